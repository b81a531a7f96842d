import { relative, resolve, sep } from "node:path";

/** Resolves a path from the model. The sandbox is the security border; this only keeps an agent at its work. */
export function pathInside(workdir: string, path: string): string {
  const absolute = resolve(workdir, path);
  const inside = relative(workdir, absolute);
  if (inside === ".." || inside.startsWith(`..${sep}`)) {
    throw new Error(`${path} is outside of ${workdir}. Use a path inside of it.`);
  }
  if (inside.split(sep).includes(".git")) throw new Error(`${path} belongs to git. Use git commands in the terminal.`);
  return absolute;
}
