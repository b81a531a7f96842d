import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "../system/git.ts";
import { keepEndsOf } from "../system/output.ts";

const maxSides = 20;
const maxSideBytes = 8 * 1024;
const maxSidesBytes = 48 * 1024;

/** Merges both sides. Conflicting files contain both sides. */
export async function mergeTree(
  git: Git,
  ours: string,
  theirs: string,
): Promise<{ readonly tree: string; readonly paths: readonly string[] }> {
  const merge = ["merge-tree", "--write-tree", "--allow-unrelated-histories", "--name-only", "-z", ours, theirs];
  const listed = await git(...merge).catch((error) => {
    if (error?.code !== 1) throw error;
    return String(error.stdout);
  });
  const [tree = "", ...rest] = listed.split("\0");
  // An empty field ends the paths. Messages for people follow.
  const paths = rest.slice(0, Math.max(0, rest.indexOf("")));
  return { tree, paths };
}

/** Shows each side's changes to the files since the merge base. */
export async function bothSides(git: Git, ours: string, theirs: string, paths: readonly string[]): Promise<string> {
  const base = (await git("merge-base", ours, theirs).catch(() => "")).trim();
  if (base === "") return "";
  const side = async (commit: string, path: string) =>
    keepEndsOf(await git("diff", "--no-ext-diff", "--no-textconv", base, commit, "--", path), maxSideBytes);
  const texts: string[] = [];
  for (const path of paths.slice(0, maxSides)) {
    texts.push(
      `Your change of ${path}:\n${await side(ours, path)}\nMain's change of ${path}:\n${await side(theirs, path)}`,
    );
  }
  return keepEndsOf(texts.join("\n"), maxSidesBytes);
}

/** Returns the files that still have conflict marks. */
export async function unsolvedIn(workdir: string, paths: readonly string[]): Promise<string[]> {
  const texts = await Promise.all(paths.map((path) => readFile(join(workdir, path), "utf8").catch(() => "")));
  return paths.filter((_, index) => /^(<{7}|>{7}) /m.test(texts[index] ?? ""));
}
