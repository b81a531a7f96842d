import { type BranchView, type BuildId, SlipwayError } from "@slipway/contract";
import { type CandidateRecord, hasEnded, type Store } from "@slipway/engine";
import { readAll } from "./all-records.ts";
import type { BuildFace } from "./build-face.ts";
import { queueOf } from "./build-views.ts";
import type { BuildRepository } from "./repository/repository.ts";

export type Branches = Pick<BuildRepository, "candidates" | "discard">;

export interface BranchParts {
  readonly store: Pick<Store, "builds">;
  repositoryOf(build: BuildId): string;
  branchesOf(build: BuildId): Promise<Branches | undefined>;
}

export function createBuildBranches(parts: BranchParts): Pick<BuildFace, "branches" | "discardBranch"> {
  const { store, repositoryOf, branchesOf } = parts;
  const read = async (build: BuildId) => {
    const record = await store.builds.get(build);
    const kept = await branchesOf(build);
    const commits = await kept?.candidates();
    const candidates = await readAll(store, build, "candidates");
    return { record, kept, commits: commits ?? new Map<string, string>(), candidates };
  };
  return {
    async branches(build) {
      const { record, commits, candidates } = await read(build);
      const branches = candidates.filter(({ id }) => commits.has(id)).toSorted((a, b) => a.createdAt - b.createdAt);
      return {
        repository: queueOf({ build: record }) === null ? null : repositoryOf(build),
        branches: branches.map(branchViewOf),
      };
    },

    async discardBranch(build, candidate) {
      const { record, kept, commits, candidates } = await read(build);
      const found = candidates.find(({ id }) => id === candidate);
      const isOver = hasEnded(record);
      if (!commits.has(candidate) || (found === undefined && isOver)) {
        throw new SlipwayError("candidate_not_found", `${build} keeps no branch of a candidate ${candidate}`);
      }
      // One without a record was taken just now: the next turn has it.
      if (found === undefined || (isOpen(found) && !isOver)) {
        throw new SlipwayError("candidate_under_way", `the merge queue of ${build} is not done with ${candidate}`);
      }
      await kept?.discard(candidate);
      return branchViewOf(found);
    },
  };
}

function isOpen({ status }: CandidateRecord): boolean {
  return status !== "merged" && status !== "rejected";
}

function branchViewOf({ id, task, attempt, commit, status, reason, createdAt }: CandidateRecord): BranchView {
  return { id, task, attempt, commit, ref: `refs/candidates/${id}`, status, reason, offeredAt: createdAt };
}
