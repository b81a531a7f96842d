import {
  createPipeline,
  type ModelRoles,
  type NewEvent,
  planRemaining,
  type RepositoryReader,
  report,
  type WorkItem,
  type WorkingBuild,
} from "@slipway/engine";
import type { Made } from "./made.ts";

/** What planning carries out. */
export type PlanningItem = Extract<WorkItem, { type: "stage" | "plan-remaining" }>;

export function isPlanning(item: WorkItem): item is PlanningItem {
  return item.type === "stage" || item.type === "plan-remaining";
}

export interface StageParts {
  readonly models: ModelRoles;
  readonly repository: RepositoryReader;
  readonly made: Made;
  readonly clock: { now(): number };
  readonly signal: AbortSignal;
}

/** Does what the item asks for, and answers with what is to be reported. */
export async function runStage(build: WorkingBuild, item: PlanningItem, parts: StageParts): Promise<NewEvent> {
  const { models, made, signal } = parts;
  const pipeline = createPipeline(parts);
  if (item.type === "plan-remaining") {
    const { round, unsatisfied } = item;
    const seen = await made.evidence(build.id, round);
    const remaining = {
      unsatisfied: unsatisfied.map((id) => ({ id, evidence: seen.get(id) ?? "the last check found it not satisfied" })),
      tasks: await made.tasks(build.id),
    };
    const question = { ...(await made.locked(build.id)), partition: await made.partition(build.id), signal };
    const { tasks } = await planRemaining(models, question, remaining);
    return report("remaining.planned", keysOf(item).done, { round, tasks: [...tasks] });
  }
  const key = keysOf(item).done;
  switch (item.stage) {
    case "draft": {
      const { open, start } = await pipeline.draft(build.request, build.mode, { signal });
      return report("intent.drafted", key, { open, start: JSON.parse(JSON.stringify(start)) });
    }
    case "lock": {
      const { locked, checks } = await pipeline.lock(await made.open(build.id), { signal });
      return report("intent.locked", key, { locked, checks: { ...checks, checks: [...checks.checks] } });
    }
    case "plan": {
      const { locked, start } = await made.locked(build.id);
      const plan = await pipeline.plan(locked, start, { partition: await made.partition(build.id), signal });
      return report("plan.made", key, { plan: { ...plan, tasks: [...plan.tasks] } });
    }
  }
}

/** What the item ends as, when it can not be done. */
export function failure(
  item: PlanningItem,
  { code, message }: { code: string; message: string },
  budgetMicroUsd: number,
): NewEvent {
  const key = keysOf(item).failed;
  const { round } = item;
  if (item.type === "plan-remaining") return report("remaining.unplannable", key, { round, message });
  return report("stage.failed", key, { stage: item.stage, round, code, message, budgetMicroUsd });
}

/** There was no money for a plan of what is left: it is asked for again when there is more. */
export function refusal({ round }: { readonly round: number }, budgetMicroUsd: number): NewEvent {
  // Without a key: the same plan may be refused again.
  return report("remaining.refused", null, { round, budgetMicroUsd });
}

/** Of the reports that an item can end with: whoever does it, and however often, it is told once. */
export function keysOf(item: PlanningItem): { readonly done: string; readonly failed: string } {
  if (item.type === "plan-remaining") {
    return { done: `remaining.planned:${item.round}`, failed: `remaining.unplannable:${item.round}` };
  }
  const done = { draft: "intent.drafted", lock: "intent.locked", plan: "plan.made" };
  return { done: done[item.stage], failed: `stage.failed:${item.stage}:${item.round}` };
}
