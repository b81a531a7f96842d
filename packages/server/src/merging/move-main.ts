import { hasCode } from "@slipway/contract";
import { type MergeWork, type NewEvent, report } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

/** Enough of a change to show what has mended an error. */
const fixBytes = 4000;

/** Moves main by one atomic update. Asked for again, it finds what the first time has done. */
export async function moveMain(
  repository: Pick<BuildRepository, "moveMain" | "main" | "treeOf" | "diff">,
  { candidate, from, to, tree }: Extract<MergeWork, { type: "merge" }>,
  signal: AbortSignal,
): Promise<NewEvent> {
  signal.throwIfAborted();
  const key = `merge.ended:${candidate}:${to}`;
  try {
    await repository.moveMain(from, to);
  } catch (error) {
    if (!hasCode(error, "main_moved")) throw error;
    const commit = await repository.main();
    const main = { commit, tree: await repository.treeOf(commit) };
    return report("merge.ended", key, { candidate, merged: false, main });
  }
  // Main has moved: that nobody learns from it is no reason not to say so.
  const fix = await repository.diff(from, to, { mostBytes: fixBytes }).catch(() => undefined);
  const end = { candidate, merged: true, main: { commit: to, tree }, ...(fix && { fix: fix.text }) };
  return report("merge.ended", key, end);
}
