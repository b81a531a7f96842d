import { type BuildId, type Check, checkSchema, type Intent, SlipwayError } from "@slipway/contract";
import type { CheckRecord, PlanRecord, Store } from "@slipway/engine";
import { z } from "zod";
import { readAll } from "../all-records.ts";
import { readLocked } from "../planning/made.ts";
import type { BuildRepository } from "../repository/repository.ts";

/** A criterion or a workflow, and all that says whether it is satisfied. */
export interface Demand {
  readonly id: string;
  /** What an agent may know of it. */
  readonly statement: string;
  readonly checks: readonly Check[];
  /** Tasks that have to be done before it can be satisfied. */
  readonly tasks: ReadonlySet<string>;
  /** Those that the plan names for it. */
  readonly servedBy: ReadonlySet<string>;
}

const checksSchema = z.array(checkSchema).min(1);

export async function readDemands(store: Pick<Store, "builds">, build: BuildId, signal: AbortSignal) {
  const { locked } = await readLocked(store, build, signal);
  const checks = await store.builds.records(build, "checks");
  const other = checks.find(({ intentHash }) => intentHash !== locked.hash);
  if (other !== undefined) throw new SlipwayError("internal", `the check of ${other.criterion} is of another intent`);
  return demandsOf(locked.intent, checks, await store.builds.records(build, "plans"));
}

/** What no task says it serves can only be there when all of them are done. */
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

/** Those that a commit with these tasks has to satisfy. */
export function dueOf(demands: readonly Demand[], within: ReadonlySet<string>): Demand[] {
  return demands.filter(({ tasks }) => tasks.isSubsetOf(within));
}

/** Tasks whose merges a commit has. */
export async function tasksWithin(
  store: Pick<Store, "builds">,
  repository: Pick<BuildRepository, "isAncestor">,
  build: BuildId,
  commit: string,
): Promise<Set<string>> {
  const merges = (await readAll(store, build, "merges")).toSorted((a, b) => b.position - a.position);
  // Main is one line: a commit that has one merge has all before it.
  let behind = 0;
  for (const merge of merges) {
    if (await repository.isAncestor(merge.commit, commit)) break;
    behind++;
  }
  return new Set(merges.slice(behind).map(({ task }) => task));
}
