import type { BuildMode, CompiledChecks, LockedIntent, OpenIntent, Partition, Plan } from "@slipway/contract";
import { findStart } from "./ask/start.ts";
import { createTick as createBuildTick, type Tick, type TickParts } from "./build/run.ts";
import { lockIntent } from "./intent/decide.ts";
import { compileChecks, draftIntent } from "./intent/run.ts";
import { mergesUnderway, mergeTurn } from "./merge/run.ts";
import { makePlan } from "./plan/run.ts";
import type { ModelRoles } from "./ports/models.ts";
import type { RepositoryReader, StartingPoint } from "./ports/repository.ts";

// What else is asked of the stages, from outside of the engine.
export { applyActions } from "./build/apply.ts";
export { decide } from "./build/decide.ts";
export { mostTries } from "./build/escalate.ts";
export { briefly } from "./build/fingerprint.ts";
export { createFleet } from "./build/fleet.ts";
export { patternScope } from "./build/intake.ts";
export { observe } from "./build/observe.ts";
export { type BuildOrder, order } from "./build/orders.ts";
export { newBuildDetails, readState } from "./build/records.ts";
export type { Tick } from "./build/run.ts";
export * from "./build/state.ts";
export { editIntent, isIntact, lockIntent } from "./intent/decide.ts";
export type { MergeAction } from "./merge/actions.ts";
export { applyMergeActions } from "./merge/apply.ts";
export { decide as decideMerges } from "./merge/decide.ts";
export { observeMerges, type QueueFact } from "./merge/observe.ts";
export * from "./merge/state.ts";
export { criticalPath } from "./plan/critical-path.ts";
export { partition } from "./plan/partition.ts";
export { planRemaining, type Remaining } from "./plan/run.ts";

/** The turns of builds, each with its merge queue. */
export function createTick(parts: Omit<TickParts, "mergeTurn" | "mergesUnderway">): Tick {
  return createBuildTick({ ...parts, mergeTurn, mergesUnderway });
}

/**
 * Every stage from a request to a plan. Between `draft` and `lock` the user may edit; whatever a
 * stage returns is kept before the next one begins, so that a crash repeats one stage at most.
 */
export interface Pipeline {
  /** request -> intent, open */
  draft(request: string, mode: BuildMode, options?: StageOptions): Promise<Draft>;
  /** intent, open -> intent, locked, and what will prove it */
  lock(open: OpenIntent, options?: StageOptions): Promise<Locked>;
  /** intent, locked -> plan */
  plan(locked: LockedIntent, start: StartingPoint, options?: PlanOptions): Promise<Plan>;
}

export interface StageOptions {
  readonly signal?: AbortSignal;
}

export interface PlanOptions extends StageOptions {
  /** What tasks are cut by; by feature when left out. */
  readonly partition?: Partition;
}

export interface Draft {
  readonly open: OpenIntent;
  readonly start: StartingPoint;
}

export interface Locked {
  readonly locked: LockedIntent;
  /** For the host alone: whoever keeps it keeps it away from sandboxes and agents. */
  readonly checks: CompiledChecks;
}

export interface PipelinePorts {
  readonly models: ModelRoles;
  readonly repository: RepositoryReader;
  readonly clock: { now(): number };
}

export function createPipeline({ models, repository, clock }: PipelinePorts): Pipeline {
  return {
    async draft(request, mode, options = {}) {
      const start = await findStart(mode, repository, options);
      return { open: await draftIntent(models, { request, start, ...options }), start };
    },

    async lock(open, options = {}) {
      const locked = await lockIntent(open, clock.now());
      return { locked, checks: await compileChecks(models, locked, options) };
    },

    plan: (locked, start, options = {}) => makePlan(models, { locked, start, ...options }),
  };
}
