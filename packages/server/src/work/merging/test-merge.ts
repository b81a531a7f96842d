import { hasCode } from "@slipway/contract";
import { type MergeWork, type NewEvent, report, type Store, type WorkingBuild } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

type TestMerge = Extract<MergeWork, { type: "test-merge" }>;

interface TestMergeParts {
  readonly store: Pick<Store, "builds">;
  readonly repository: Pick<BuildRepository, "merge" | "commit">;
  readonly clock: { now(): number };
}

/** Makes what main would be with the candidate: one commit on top of its base. */
export async function testMerge(
  { store, repository, clock }: TestMergeParts,
  build: WorkingBuild,
  { candidate, task, base, commit }: TestMerge,
  signal: AbortSignal,
): Promise<NewEvent> {
  // Without a key: a commit that is offered again is tested again.
  const tested = (outcome: { type: "clean"; commit: string; tree: string } | { type: "conflict"; paths: string[] }) =>
    report("merge.tested", null, { base, commit, outcome });
  const merged = await repository.merge({ ours: base, theirs: commit, signal }).catch((error) => {
    if (hasCode(error, "candidate_refused")) return undefined;
    throw error;
  });
  if (merged === undefined) return tested({ type: "conflict", paths: [] });
  if (!merged.clean) return tested({ type: "conflict", paths: [...merged.conflicts] });
  const { tree } = merged;
  const message = `${await titleOf(store, build, task)}\n\nTask: ${task}\nCandidate: ${candidate}`;
  const made = await repository.commit({ tree, parents: [base], message, atMs: clock.now(), signal });
  return tested({ type: "clean", commit: made, tree });
}

async function titleOf(store: Pick<Store, "builds">, { id }: WorkingBuild, task: string): Promise<string> {
  const plans = await store.builds.records(id, "plans");
  return plans.flatMap(({ tasks }) => tasks).find((one) => one.id === task)?.title ?? task;
}
