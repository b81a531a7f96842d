import { type BuildId, hasCode, maxFilesTold, SlipwayError } from "@slipway/contract";
import { type MergeWork, type NewEvent, report, type Store } from "@slipway/engine";
import { queueOf } from "../build-record.ts";
import { mainFileOf } from "../repository/changes.ts";
import type { BuildRepository } from "../repository/repository.ts";

/** Enough of a change to show how it fixed an error. */
const fixBytes = 4000;

/** Moves main by one atomic update. A repeated call finds what the first one did. */
export async function moveMain(
  repository: Pick<BuildRepository, "moveMain" | "main" | "treeOf" | "diff" | "changedFiles">,
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
  // Main has moved: report that even if its changes cannot be read.
  const fix = await repository.diff(from, to, { mostBytes: fixBytes }).catch(() => undefined);
  const files = await repository.changedFiles(from, to).catch(() => undefined);
  return report("merge.ended", key, {
    candidate,
    merged: true,
    main: { commit: to, tree },
    ...(fix && { fix: fix.text }),
    ...(files && { files: files.slice(0, maxFilesTold).map(mainFileOf), fileCount: files.length }),
  });
}

/** The build's repository is gone: reports main as recorded, so that a cancel need not wait for the move. */
export async function giveUpMove(
  { builds }: Pick<Store, "builds">,
  build: BuildId,
  { candidate, to }: Extract<MergeWork, { type: "merge" }>,
): Promise<NewEvent> {
  const main = queueOf({ build: await builds.get(build) })?.main;
  if (main === undefined) throw new SlipwayError("commit_not_found", `${build} has no main`);
  return report("merge.ended", `merge.ended:${candidate}:${to}`, { candidate, merged: false, main });
}
