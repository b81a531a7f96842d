import {
  type BuildId,
  type Intent,
  type KeptCheck,
  keptCheckSchema,
  SlipwayError,
  type Surface,
} from "@slipway/contract";
import type { CheckRecord, PlanRecord, Store } from "@slipway/engine";
import type { CallOptions } from "@slipway/sandbox";
import { z } from "zod";
import { readAll } from "../all-records.ts";
import { readLocked } from "../planning/made.ts";
import type { BuildRepository } from "../repository/repository.ts";

/** A criterion or workflow with its checks. */
export interface Demand {
  readonly id: string;
  /** What agents may know of it. */
  readonly statement: string;
  readonly checks: readonly KeptCheck[];
  /** Tasks that must be done before it can be satisfied. */
  readonly tasks: ReadonlySet<string>;
  /** The tasks that the plan names for it. */
  readonly servedBy: ReadonlySet<string>;
}

/** What of an app is checked. */
export interface Wanted {
  readonly surface: Surface;
  readonly demands: readonly Demand[];
}

const checksSchema = z.array(keptCheckSchema).min(1);

/** Of an intent that was locked before intents had surfaces: its checks name things themselves. */
const noSurface: Surface = { pages: [], controls: [], messages: [], routes: [] };

export async function readDemands(store: Pick<Store, "builds">, build: BuildId, signal: AbortSignal): Promise<Wanted> {
  const { locked } = await readLocked(store, build, signal);
  const checks = await store.builds.records(build, "checks");
  const other = checks.find(({ intentHash }) => intentHash !== locked.hash);
  if (other !== undefined)
    throw new SlipwayError("internal", `the check of ${other.criterion} belongs to another intent`);
  const demands = demandsOf(locked.intent, checks, await store.builds.records(build, "plans"));
  return { surface: locked.intent.surface ?? noSurface, demands };
}

/** A demand that no task names is due only after all tasks. */
export function demandsOf(
  { criteria, workflows }: Pick<Intent, "criteria" | "workflows">,
  records: readonly Pick<CheckRecord, "criterion" | "check">[],
  plans: readonly Pick<PlanRecord, "tasks">[],
): Demand[] {
  const tasks = plans.flatMap((plan) => plan.tasks);
  const statements = [
    ...criteria.map(({ id, statement }) => ({ id, statement })),
    ...workflows.map(({ id, title, steps, success }) => ({
      id,
      statement: [`${title}:`, ...steps.map((step, index) => `${index + 1}. ${step}`), success].join("\n"),
    })),
  ];
  return statements.map(({ id, statement }) => {
    const record = records.find(({ criterion }) => criterion === id);
    if (record === undefined) throw new SlipwayError("internal", `nothing checks ${id}`);
    const servedBy = new Set(tasks.filter((task) => task.criteria.includes(id)).map((task) => task.id));
    const needed = servedBy.size > 0 ? servedBy : new Set(tasks.map((task) => task.id));
    return { id, statement, checks: checksSchema.parse(record.check), tasks: needed, servedBy };
  });
}

/** The demands that a commit with these tasks has to satisfy. */
export function dueOf(demands: readonly Demand[], within: ReadonlySet<string>): Demand[] {
  return demands.filter(({ tasks }) => tasks.isSubsetOf(within));
}

/** Tasks whose merges the commit contains. */
export async function tasksWithin(
  store: Pick<Store, "builds">,
  repository: Pick<BuildRepository, "isAncestor">,
  build: BuildId,
  commit: string,
): Promise<Set<string>> {
  const merges = (await readAll(store, build, "merges")).toSorted((a, b) => b.position - a.position);
  // Main is linear: a commit that contains a merge contains all before it.
  let behind = 0;
  for (const merge of merges) {
    if (await repository.isAncestor(merge.commit, commit)) break;
    behind++;
  }
  return new Set(merges.slice(behind).map(({ task }) => task));
}

/**
 * For a task whose agent says that main already has what the task is for: why nothing proves that, if so. Demands that the
 * task serves are checked anyway. A task that serves none needs all its expected files changed by others.
 */
export async function lacksEvidence(
  { store, repository, build, commit }: MainLooked,
  task: string,
  demands: readonly Demand[],
  call: CallOptions,
): Promise<string | undefined> {
  if (demands.some(({ servedBy }) => servedBy.has(task))) return undefined;
  const plans = await readAll(store, build, "plans");
  const expected = plans.flatMap(({ tasks }) => tasks).find(({ id }) => id === task)?.expectedFiles ?? [];
  const first = (await readAll(store, build, "merges")).find(({ position }) => position === 1);
  const changes = first === undefined ? [] : await repository.changedFiles(first.parent, commit, call);
  const changed = new Set(changes.map(({ path }) => path));
  const left = expected.filter((path) => !changed.has(path));
  if (expected.length > 0 && left.length === 0) return undefined;
  const files = left.length === 0 ? "" : ` Nobody has changed ${left.slice(0, 20).join(", ")} since the build began.`;
  return `No check shows that main has what this task is for.${files}`;
}

interface MainLooked {
  readonly store: Pick<Store, "builds">;
  readonly repository: Pick<BuildRepository, "changedFiles">;
  readonly build: BuildId;
  /** The head of main. */
  readonly commit: string;
}
