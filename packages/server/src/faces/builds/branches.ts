import { type BranchView, type BuildId, SlipwayError } from "@slipway/contract";
import { type AttemptRecord, type CandidateRecord, hasEnded, type Store } from "@slipway/engine";
import { readAll } from "../../work/all-records.ts";
import { queueOf } from "../../work/build-record.ts";
import { type BuildRepository, branchRef } from "../../work/repository/repository.ts";
import type { BuildMethods } from "./face.ts";

export type Branches = Pick<BuildRepository, "candidates" | "openBranches" | "discard">;

export interface BranchParts {
  readonly store: Pick<Store, "builds">;
  repositoryOf(build: BuildId): string;
  branchesOf(build: BuildId): Promise<Branches | undefined>;
}

export function createBuildBranches(parts: BranchParts): Pick<BuildMethods, "branches" | "discardBranch"> {
  const { store, repositoryOf, branchesOf } = parts;
  const read = async (build: BuildId) => {
    const record = await store.builds.get(build);
    const repository = await branchesOf(build);
    const offered = (await repository?.candidates()) ?? new Map<string, string>();
    const open = (await repository?.openBranches()) ?? new Map<string, string>();
    const candidates = await readAll(store, build, "candidates");
    const attempts = await readAll(store, build, "attempts");
    const known = new Set(candidates.map(({ commit }) => commit));
    const branches = [
      ...candidates.filter(({ id }) => offered.has(id)).map(offeredBranch),
      ...attempts.flatMap((attempt) => {
        const commit = open.get(attempt.id);
        return commit === undefined || known.has(commit) ? [] : [openBranch(attempt, commit)];
      }),
    ];
    const isKept = (id: string) => offered.has(id) || open.has(id);
    return { record, repository, isKept, branches: branches.toSorted((a, b) => a.at - b.at) };
  };
  return {
    async branches(build) {
      const { record, branches } = await read(build);
      return { repository: queueOf({ build: record }) === null ? null : repositoryOf(build), branches };
    },

    async discardBranch(build, id) {
      const { record, repository, isKept, branches } = await read(build);
      const branch = branches.find((one) => one.id === id);
      const isOver = hasEnded(record);
      if (!isKept(id) || (branch === undefined && isOver)) {
        throw new SlipwayError("branch_not_found", `${build} keeps no branch ${id}`);
      }
      // One without a record was taken just now: the next turn has it.
      if (branch === undefined || (!isOver && !isDone(branch))) {
        throw new SlipwayError("branch_in_use", `${build} is not done with ${id}`);
      }
      await repository?.discard(id);
      return branch;
    },
  };
}

function isDone({ status }: BranchView): boolean {
  return status === "merged" || status === "rejected" || status === "unoffered";
}

function offeredBranch({ id, task, attempt, commit, status, reason, createdAt }: CandidateRecord): BranchView {
  return { id, task, attempt, commit, ref: branchRef(id), status, reason, at: createdAt };
}

function openBranch({ id, task, reason, startedAt, endedAt }: AttemptRecord, commit: string): BranchView {
  const status = endedAt === null ? "building" : "unoffered";
  return { id, task, attempt: id, commit, ref: branchRef(id), status, reason, at: startedAt };
}
