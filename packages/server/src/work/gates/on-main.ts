import type { Store, WorkingBuild } from "@slipway/engine";
import { readAll } from "../all-records.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Demand } from "./demands.ts";

interface OnMain {
  readonly store: Pick<Store, "builds">;
  readonly repository: Pick<BuildRepository, "changedFiles">;
  readonly build: WorkingBuild;
  readonly task: string;
  /** Main's. */
  readonly commit: string;
  readonly signal: AbortSignal;
}

/**
 * Why nothing shows that main has what a task is for, whose agent has nothing to add. What a task serves is checked; of one that
 * serves nothing, the others must at least have changed all files that the plan has expected it to.
 */
export async function lacksEvidence(of: OnMain, demands: readonly Demand[]): Promise<string | undefined> {
  const { store, repository, build, task, commit, signal } = of;
  if (demands.some(({ servedBy }) => servedBy.has(task))) return undefined;
  const plans = await readAll(store, build.id, "plans");
  const expected = plans.flatMap(({ tasks }) => tasks).find(({ id }) => id === task)?.expectedFiles ?? [];
  const first = (await readAll(store, build.id, "merges")).find(({ position }) => position === 1);
  const changes = first === undefined ? [] : await repository.changedFiles(first.parent, commit, { signal });
  const changed = new Set(changes.map(({ path }) => path));
  const left = expected.filter((path) => !changed.has(path));
  if (expected.length > 0 && left.length === 0) return undefined;
  const files = left.length === 0 ? "" : ` Nobody has changed ${left.slice(0, 20).join(", ")} since the build began.`;
  return `No check shows that main has what this task is for.${files}`;
}
