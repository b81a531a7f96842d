import type { AttemptRecord, CandidateRecord, MergeRecord } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

export interface BranchRecords {
  readonly merges: readonly Pick<MergeRecord, "task">[];
  readonly candidates: readonly Pick<CandidateRecord, "id" | "task" | "commit">[];
  readonly attempts: readonly Pick<AttemptRecord, "id" | "task">[];
}

/**
 * Removes the branches of a build that has ended. Keeps work on tasks that are not on main, offered or not, for users
 * to look at. An offer that no turn has read has no record: it is found as the branch of its attempt.
 */
export async function dropBranches(
  repository: Pick<BuildRepository, "candidates" | "openBranches" | "discard">,
  { merges, candidates, attempts }: BranchRecords,
): Promise<void> {
  const merged = new Set(merges.map(({ task }) => task));
  const wanted = new Set<string>(
    [...candidates, ...attempts].filter(({ task }) => !merged.has(task)).map(({ id }) => id),
  );
  const offered = new Set(candidates.map(({ commit }) => commit));
  for (const id of (await repository.candidates()).keys()) if (!wanted.has(id)) await repository.discard(id);
  for (const [id, commit] of await repository.openBranches()) {
    if (!wanted.has(id) || offered.has(commit)) await repository.discard(id);
  }
}
