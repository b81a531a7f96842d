import { relative, resolve, sep } from "node:path";

/** The absolute path of what a model named. The sandbox is the border; this keeps an agent at its work. */
export function pathInside(workdir: string, path: string): string {
  const absolute = resolve(workdir, path);
  const inside = relative(workdir, absolute);
  if (inside === ".." || inside.startsWith(`..${sep}`)) {
    throw new Error(`${path} is outside of ${workdir}. Use a path inside of it.`);
  }
  if (inside.split(sep).includes(".git")) throw new Error(`${path} belongs to git. Use git commands in the terminal.`);
  return absolute;
}
