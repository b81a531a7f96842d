import type { CandidateRecord, MergeRecord } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

export interface BranchRecords {
  readonly merges: readonly Pick<MergeRecord, "task">[];
  readonly candidates: readonly Pick<CandidateRecord, "id" | "task">[];
}

/**
 * Lets go of the branches of a build that has ended. Work at tasks that are not on main stays for a person to look at; what
 * was on its way when a process died is in no record, and nobody would find it.
 */
export async function dropBranches(
  repository: Pick<BuildRepository, "candidates" | "discard">,
  { merges, candidates }: BranchRecords,
): Promise<void> {
  const merged = new Set(merges.map(({ task }) => task));
  const open = new Set(candidates.filter(({ task }) => !merged.has(task)).map(({ id }) => id));
  for (const id of (await repository.candidates()).keys()) if (!open.has(id)) await repository.discard(id);
}
