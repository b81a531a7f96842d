import { SlipwayError } from "@slipway/contract";
import { writeRawCommit } from "../repository/commit.ts";
import type { Git } from "../repository/git.ts";
import { line } from "../repository/objects.ts";

/**
 * Replays main's commits on top of the commit that main's files are from: a build's main has its own root, and others
 * cannot merge a branch without common history. Same commits give same results. `known` maps commits replayed before.
 */
export async function replayed(
  git: Git,
  main: string,
  onto: string,
  known: Map<string, string> = new Map(),
): Promise<string> {
  const [first, ...commits] = line(await git.run(["rev-list", "--reverse", main])).split("\n");
  const [began, found] = line(await git.run(["rev-parse", `${first}^{tree}`, `${onto}^{tree}`])).split("\n");
  if (began !== found) throw new SlipwayError("git_failed", `main did not start with the files of the commit ${onto}`);
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
  return await writeRawCommit(git, Buffer.from(text.replace(/^parent .*$/m, `parent ${parent}`), "latin1"));
}
