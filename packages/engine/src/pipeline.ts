import type { BuildMode, CompiledChecks, LockedIntent, OpenIntent, Plan } from "@slipway/contract";
import { findStart } from "./ask/start.ts";
import { createTick as createBuildTick, type Tick, type TickParts } from "./build/run.ts";
import { lockIntent } from "./intent/decide.ts";
import { type DisputeEnd, type DisputeQuestion, settleDispute } from "./intent/dispute.ts";
import { compileChecks, draftIntent } from "./intent/run.ts";
import { mergesUnderway, mergeTurn } from "./merge/run.ts";
import { makePlan, type PlanQuestion, planRemaining, type Remaining } from "./plan/run.ts";
import type { Dummies } from "./ports/dummies.ts";
import type { ModelRoles } from "./ports/models.ts";
import type { RepositoryReader, StartingPoint } from "./ports/repository.ts";
import type { WorkItem } from "./ports/work.ts";

/**
 * From a request to a preview. A turn decides what comes next and asks for it as work items; what comes of an item is
 * reported, and the next turn takes it in. So a crash repeats one stage at most.
 *
 *   request -> draft -> lock -> plan -> attempts -> gates -> line -> main -> preview
 *                                        ^  ^         |       |       |
 *                                        |  +---- refused ----+       v
 *                                        +- remaining plan <- satisfaction -> succeeded
 */
const stages = {
  /** draft: request -> open intent; lock: -> locked intent and its checks; plan: -> tasks. See `Pipeline`. */
  stage: "planning",
  /** A task -> a candidate, by an agent in a sandbox. A refused candidate goes back to its attempt. */
  attempt: "attempts",
  "end-attempt": "attempts",
  /** A candidate, on main and those ahead of it -> a commit, or a conflict. */
  "test-merge": "merging",
  /** A candidate -> the verdict of one gate. */
  "gate-run": "merging",
  "cancel-run": "merging",
  /** A candidate that has passed all gates -> main, which the preview follows. */
  merge: "merging",
  /** A check that work keeps failing -> what is wrong, the app or the check; a wrong check is compiled anew. */
  "settle-dispute": "planning",
  /** Main, after the last task -> the criteria that it does not satisfy. None: the build has succeeded. */
  "check-satisfaction": "merging",
  /** Unsatisfied criteria -> more tasks. */
  "plan-remaining": "planning",
} as const satisfies Record<WorkItem["type"], string>;

/** A build's turns: each takes in what was reported, lets the merge queue decide, then the build. */
export function createTick(parts: Omit<TickParts, "mergeTurn" | "mergesUnderway">): Tick {
  return createBuildTick({ ...parts, mergeTurn, mergesUnderway });
}

/** The part of the server that carries out an item. */
type Room = (typeof stages)[WorkItem["type"]];
export type ItemFor<R extends Room> = {
  [T in WorkItem["type"]]: (typeof stages)[T] extends R ? Extract<WorkItem, { type: T }> : never;
}[WorkItem["type"]];

export function itemsFor<R extends Room>(room: R, items: readonly WorkItem[]): readonly ItemFor<R>[] {
  return items.filter((item): item is ItemFor<R> => stages[item.type] === room);
}

/** The stages that ask models. Between `draft` and `lock` the user may edit. */
export interface Pipeline {
  /** request -> open intent */
  draft(request: string, mode: BuildMode): Promise<{ readonly open: OpenIntent; readonly start: StartingPoint }>;
  /**
   * open intent -> locked intent, and what will prove it: whoever keeps the checks keeps them away from sandboxes and
   * agents
   */
  lock(open: OpenIntent): Promise<{ readonly locked: LockedIntent; readonly checks: CompiledChecks }>;
  /** locked intent -> plan */
  plan(question: Omit<PlanQuestion, "signal">): Promise<Plan>;
  /** a check, and work that fails it -> what is wrong */
  settleDispute(question: Omit<DisputeQuestion, "signal">): Promise<DisputeEnd>;
  /** locked intent, and what main lacks of it -> plan for the rest */
  planRemaining(question: Omit<PlanQuestion, "signal">, remaining: Remaining): Promise<Plan>;
}

export interface PipelinePorts {
  readonly models: ModelRoles;
  readonly dummies: Dummies;
  readonly repository: RepositoryReader;
  readonly clock: { now(): number };
  readonly signal?: AbortSignal | undefined;
}

export function createPipeline({ models, dummies, repository, clock, signal }: PipelinePorts): Pipeline {
  return {
    async draft(request, mode) {
      const start = await findStart(mode, repository, { signal });
      return { open: await draftIntent(models, { request, start, signal }), start };
    },
    async lock(open) {
      const locked = await lockIntent(open, clock.now());
      return { locked, checks: await compileChecks({ models, dummies }, locked, { signal }) };
    },
    settleDispute: (question) => settleDispute({ models, dummies }, { ...question, signal }),
    plan: (question) => makePlan(models, { ...question, signal }),
    planRemaining: (question, remaining) => planRemaining(models, { ...question, signal }, remaining),
  };
}
