import { hasCode } from "@slipway/contract";
import { type MergeWork, type NewEvent, report, type Store, type WorkingBuild } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

type TestMerge = Extract<MergeWork, { type: "test-merge" }>;

interface TestMergeParts {
  readonly store: Pick<Store, "builds">;
  readonly repository: Pick<BuildRepository, "merge" | "commit">;
  readonly clock: { now(): number };
}

/** What main would be with the candidate: one commit of its own on top of what is below it, as main's history has it. */
export async function testMerge(
  { store, repository, clock }: TestMergeParts,
  build: WorkingBuild,
  { candidate, task, base, commit }: TestMerge,
  signal: AbortSignal,
): Promise<NewEvent> {
  const told = (outcome: Parameters<typeof tested>[2]) => tested(base, commit, outcome);
  const merged = await repository.merge({ ours: base, theirs: commit, signal }).catch((error) => {
    if (hasCode(error, "candidate_refused")) return undefined;
    throw error;
  });
  if (merged === undefined) return told({ type: "conflict", paths: [] });
  if (!merged.clean) return told({ type: "conflict", paths: [...merged.conflicts] });
  const { tree } = merged;
  const message = `${await titleOf(store, build, task)}\n\nTask: ${task}\nCandidate: ${candidate}`;
  const made = await repository.commit({ tree, parents: [base], message, atMs: clock.now(), signal });
  return told({ type: "clean", commit: made, tree });
}

function tested(
  base: string,
  commit: string,
  outcome: { type: "clean"; commit: string; tree: string } | { type: "conflict"; paths: string[] },
): NewEvent {
  // Without a key: what is offered again is tested again.
  return report("merge.tested", null, { base, commit, outcome });
}

async function titleOf(store: Pick<Store, "builds">, { id }: WorkingBuild, task: string): Promise<string> {
  const plans = await store.builds.records(id, "plans");
  return plans.flatMap(({ tasks }) => tasks).find((one) => one.id === task)?.title ?? task;
}
