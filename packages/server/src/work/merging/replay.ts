import { SlipwayError } from "@slipway/contract";
import type { Git } from "../repository/git.ts";
import { line } from "../repository/objects.ts";

/**
 * Main's commits on top of the one that main's files are from: a build's main begins anew, and a branch without a past in
 * common can not be merged by others. The same commits give the same ones again. `known`: what became of those before.
 */
export async function replayed(
  git: Git,
  main: string,
  onto: string,
  known: Map<string, string> = new Map(),
): Promise<string> {
  const [first, ...commits] = line(await git.run(["rev-list", "--reverse", main])).split("\n");
  const [began, found] = line(await git.run(["rev-parse", `${first}^{tree}`, `${onto}^{tree}`])).split("\n");
  if (began !== found) throw new SlipwayError("git_failed", `main did not begin with the files of the commit ${onto}`);
  let tip = onto;
  for (const commit of commits) {
    const moved = known.get(commit) ?? (await moveOnto(git, commit, tip));
    known.set(commit, moved);
    tip = moved;
  }
  return tip;
}

async function moveOnto(git: Git, commit: string, parent: string): Promise<string> {
  const text = (await git.run(["cat-file", "commit", commit])).stdout.toString("latin1");
  const input = stream(Buffer.from(text.replace(/^parent .*$/m, `parent ${parent}`), "latin1"));
  return line(await git.run(["hash-object", "-t", "commit", "-w", "--stdin"], { input }));
}

async function* stream(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
