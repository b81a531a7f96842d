import type { Check, SlipwayError } from "@slipway/contract";
import {
  type DisputeWork,
  type ItemFor,
  type NewEvent,
  type Pipeline,
  report,
  type WorkingBuild,
} from "@slipway/engine";
import type { Made } from "./made.ts";

export type PlanningItem = ItemFor<"planning">;

/** Whether a check passes on a commit of main that lacks the work that failed it. */
export type PassesWithout = (
  build: WorkingBuild,
  on: { readonly commit: string; readonly dispute: number },
  check: Check,
  signal: AbortSignal,
) => Promise<boolean>;

export interface StageParts {
  readonly pipeline: Pipeline;
  readonly made: Made;
  readonly passesWithout: PassesWithout;
  /** What the provider of sandboxes has. */
  readonly gpus: readonly string[];
  readonly signal: AbortSignal;
}

/** Runs the stage that the item asks for, and returns its report. */
export async function runStage(build: WorkingBuild, item: PlanningItem, parts: StageParts): Promise<NewEvent> {
  const { pipeline, made } = parts;
  if (item.type === "settle-dispute") return await settle(build, item, parts);
  const questionOf = async () => ({
    ...(await made.locked(build.id)),
    partition: await made.partition(build.id),
    gpus: parts.gpus,
  });
  if (item.type === "plan-remaining") {
    const { round, unsatisfied } = item;
    const seen = await made.evidence(build.id, round);
    const remaining = {
      unsatisfied: unsatisfied.map((id) => ({
        id,
        evidence: seen.get(id) ?? "the last check did not find it satisfied",
      })),
      tasks: await made.tasks(build.id),
    };
    const { tasks } = await pipeline.planRemaining(await questionOf(), remaining);
    return report("remaining.planned", keysOf(item).done, { round, tasks: [...tasks] });
  }
  const key = keysOf(item).done;
  switch (item.stage) {
    case "draft": {
      const { open, start } = await pipeline.draft(build.request, build.mode);
      return report("intent.drafted", key, { open, start: JSON.parse(JSON.stringify(start)) });
    }
    case "lock": {
      const { locked, checks } = await pipeline.lock(await made.open(build.id));
      return report("intent.locked", key, { locked, checks: { ...checks, checks: [...checks.checks] } });
    }
    case "plan": {
      const plan = await pipeline.plan(await questionOf());
      return report("plan.made", key, { plan: { ...plan, tasks: [...plan.tasks] } });
    }
  }
}

async function settle(
  build: WorkingBuild,
  item: DisputeWork,
  { pipeline, made, passesWithout, signal }: StageParts,
): Promise<NewEvent> {
  const { dispute, round, at, ruling } = item;
  const { locked, checks } = await made.checks(build.id);
  const commit = await made.without(build.id, item);
  const ended = await pipeline.settleDispute({
    intent: locked.intent,
    checks,
    at,
    ruling,
    evidence: await made.failures(build.id, item),
    passesWithout: (check) => passesWithout(build, { dispute, commit }, check, signal),
  });
  return report("dispute.settled", keysOf(item).done, JSON.parse(JSON.stringify({ dispute, round, ...ended })));
}

/** The report of an item that cannot be done. */
export function failure(
  item: PlanningItem,
  { code, message }: Pick<SlipwayError, "message"> & { readonly code: string },
  budgetMicroUsd: number,
): NewEvent {
  const key = keysOf(item).failed;
  const { round } = item;
  if (item.type === "settle-dispute") {
    const because = `It could not be decided: ${message}`.slice(0, 2000);
    const undecided = { wrong: null, because, advice: null, replacement: null };
    return report("dispute.settled", keysOf(item).done, { dispute: item.dispute, round, ...undecided });
  }
  if (item.type === "plan-remaining") return report("remaining.unplannable", key, { round, message });
  return report("stage.failed", key, { stage: item.stage, round, code, message, budgetMicroUsd });
}

/** There was no money for the remaining plan: it is asked for again when there is more. */
export function refusal({ round }: { readonly round: number }, budgetMicroUsd: number): NewEvent {
  // Without a key: the same plan may be refused again.
  return report("remaining.refused", null, { round, budgetMicroUsd });
}

/** Keys of the reports that an item can end with: whoever does it, and however often, it is reported once. */
export function keysOf(item: PlanningItem): { readonly done: string; readonly failed: string } {
  if (item.type === "plan-remaining") {
    return { done: `remaining.planned:${item.round}`, failed: `remaining.unplannable:${item.round}` };
  }
  if (item.type === "settle-dispute") {
    const key = `dispute.settled:${item.dispute}:${item.round}`;
    return { done: key, failed: key };
  }
  const done = { draft: "intent.drafted", lock: "intent.locked", plan: "plan.made" };
  return { done: done[item.stage], failed: `stage.failed:${item.stage}:${item.round}` };
}
