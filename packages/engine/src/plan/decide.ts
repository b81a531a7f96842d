import {
  type ContentHash,
  findCycle,
  type Plan,
  type PlanDraft,
  planLimits,
  SlipwayError,
  type Task,
  topologicalOrder,
} from "@slipway/contract";
import type { Finding } from "../ask/ask.ts";

/** What a plan must fit. */
export interface PlanDemands {
  /** Ids of all the intent's criteria. */
  readonly criteria: readonly string[];
  /** Those that some task must serve. */
  readonly unserved: readonly string[];
  /** Ids that existing tasks have: new tasks need other ids. */
  readonly taken: readonly string[];
  /** Those of them that are merged: new tasks may depend on them. */
  readonly merged: readonly string[];
}

/** Returns everything that is wrong with a plan, at once. */
export function checkPlan({ tasks }: PlanDraft, demands: PlanDemands): readonly Finding[] {
  return [
    ...checkCount(tasks),
    ...checkIds(tasks, demands),
    ...checkDependencies(tasks, demands),
    ...checkCriteria(tasks, demands),
    ...tasks.flatMap(checkEstimate),
    ...tasks.flatMap(checkFiles),
  ];
}

/** Sorts the tasks of a sound draft so that they could be done one by one. */
export function completePlan({ tasks }: PlanDraft, of: { mode: Plan["mode"]; intentHash: ContentHash }): Plan {
  return { ...of, tasks: topologicalOrder(tasks) ?? tasks };
}

/** A model can choose another GPU, but not another provider: see `refuseGpus`. */
export function checkGpus({ tasks }: PlanDraft, known: readonly string[]): readonly Finding[] {
  if (known.length === 0) return [];
  return tasks.flatMap(({ id, gpu }) => {
    if (gpu === undefined || known.includes(gpu.split(":", 1)[0] ?? "")) return [];
    return [{ rule: "GPUs exist", message: `${id} asks for the GPU ${gpu}; there are ${known.join(", ")}` }];
  });
}

/** Fails with `capability_missing` if a task needs a GPU and there is none. */
export function refuseGpus({ tasks }: PlanDraft, known: readonly string[]): void {
  const asking = tasks.find(({ gpu }) => gpu !== undefined);
  if (known.length > 0 || asking === undefined) return;
  const message = `the task ${asking.id} needs the GPU ${asking.gpu}, and this provider of sandboxes has none`;
  throw new SlipwayError("capability_missing", message);
}

function checkCount(tasks: readonly Task[]): Finding[] {
  if (tasks.length === 0) return [{ rule: "there are tasks", message: "the plan is empty" }];
  if (tasks.length <= planLimits.maxTasks) return [];
  const message = `there are ${tasks.length} tasks; the limit is ${planLimits.maxTasks}`;
  return [{ rule: "not too many tasks", message }];
}

function checkIds(tasks: readonly Task[], { taken }: PlanDemands): Finding[] {
  const seen = new Set(taken);
  return tasks.flatMap(({ id }) => {
    if (!seen.has(id)) {
      seen.add(id);
      return [];
    }
    return [{ rule: "ids differ", message: `the id ${id} is used more than once` }];
  });
}

function checkDependencies(tasks: readonly Task[], { merged }: PlanDemands): Finding[] {
  const known = new Set([...merged, ...tasks.map(({ id }) => id)]);
  const unknown = tasks.flatMap(({ id, dependencies }) =>
    dependencies
      .filter((dependency) => !known.has(dependency))
      .map((dependency) => ({
        rule: "dependencies exist",
        message: `${id} depends on ${dependency}, which is not a task`,
      })),
  );
  const cycle = findCycle(tasks);
  if (cycle === undefined) return unknown;
  const message = `${cycle.join(" needs ")}: none of them could ever begin`;
  return [...unknown, { rule: "no cycles", message }];
}

function checkCriteria(tasks: readonly Task[], { criteria, unserved }: PlanDemands): Finding[] {
  const known = new Set(criteria);
  const served = new Set(tasks.flatMap((task) => task.criteria));
  return [
    ...unserved
      .filter((id) => !served.has(id))
      .map((id) => ({ rule: "every criterion is served", message: `no task serves ${id}` })),
    ...tasks.flatMap((task) =>
      task.criteria
        .filter((id) => !known.has(id))
        .map((id) => ({ rule: "criteria exist", message: `${task.id} serves ${id}, which the intent does not have` })),
    ),
  ];
}

function checkEstimate({ id, estimate: { minutes, usd } }: Task): Finding[] {
  const { minTaskMinutes, maxTaskMinutes, maxTaskUsd } = planLimits;
  const findings: Finding[] = [];
  if (!(minutes >= minTaskMinutes && minutes <= maxTaskMinutes)) {
    const message = `${id} takes ${minutes} minutes; a task takes ${minTaskMinutes} to ${maxTaskMinutes}`;
    findings.push({ rule: "estimates make sense", message });
  }
  if (!(usd > 0 && usd <= maxTaskUsd)) {
    const message = `${id} costs ${usd} USD; a task costs more than 0 and at most ${maxTaskUsd}`;
    findings.push({ rule: "estimates make sense", message });
  }
  return findings;
}

/** Relative, with forward slashes, inside the repository and outside git's own directory. */
const filePattern = /^(?!\/)(?!.*\\)(?!.*(^|\/)\.{1,2}(\/|$))(?!(.*\/)?\.git(\/|$))(?!.*\/\/).*[^/]$/i;

function checkFiles({ id, expectedFiles }: Task): Finding[] {
  return expectedFiles
    .filter((path) => !filePattern.test(path))
    .map((path) => ({ rule: "files are of the repository", message: `${id} names ${JSON.stringify(path)}` }));
}
