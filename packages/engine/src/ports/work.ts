import type { AttemptId, BuildId, BuildMode } from "@slipway/contract";

/**
 * Carries out what a build decides. Nothing here waits for the work itself: what comes of it is reported to the store
 * (see build/reports.ts), and the build's bell is rung.
 */
export interface Work {
  /** Begins what is asked for. What was begun before, by this process or by one that died, is not begun again. */
  carryOut(build: WorkingBuild, asked: readonly WorkItem[]): Promise<void>;
  /**
   * After a restart: all that should be under way in the build. What is not there is begun, what is there is taken up
   * again, and what is there beyond it is ended.
   */
  reattach(build: WorkingBuild, all: readonly WorkItem[]): Promise<void>;
  /** The last sign of life of an attempt that this process has heard of. */
  heardAtMs(build: BuildId, task: string, attempt: number): number | undefined;
}

/** What work is done for. */
export interface WorkingBuild {
  readonly id: BuildId;
  readonly account: string;
  readonly project: string;
  readonly mode: BuildMode;
  readonly request: string;
}

/** Stages before the first task, in their order. Each reports what it made, or `stage.failed`. */
export const stages = ["draft", "lock", "plan"] as const;
export type Stage = (typeof stages)[number];

/** An item names all that tells it from others. */
export type WorkItem =
  /** `round`: from 1; a stage that failed for want of money is begun again in the next one. */
  | { readonly type: "stage"; readonly stage: Stage; readonly round: number }
  | AttemptWork
  | { readonly type: "end-attempt"; readonly id: AttemptId; readonly task: string; readonly keepSandbox: boolean }
  | { readonly type: "check-satisfaction"; readonly round: number }
  | { readonly type: "plan-remaining"; readonly round: number; readonly unsatisfied: readonly string[] };

/** How an attempt should be: it is started, respawned, paused or resumed to be so. */
export interface AttemptWork {
  readonly type: "attempt";
  readonly id: AttemptId;
  /** Of the plan. */
  readonly task: string;
  /** From 1, per task. */
  readonly number: number;
  /** How often it has been respawned from its last checkpoint. A higher number than before: its sandbox is gone. */
  readonly respawn: number;
  readonly paused: boolean;
  /** Of error escalation; null: the first try. */
  readonly level: number | null;
  /** The signature of the known fix that is tried. */
  readonly pattern: string | null;
  readonly from: "main" | "last-attempt";
}
