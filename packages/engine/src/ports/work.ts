import type { AttemptId, BuildId, BuildMode, CandidateId, Finding } from "@slipway/contract";

/**
 * Carries out what a build decides. Nothing here waits for the work itself: what comes of it is reported to the store
 * (see reports.ts), and the build's bell is rung.
 */
export interface Work {
  /** Whether what the build has come to is here, to be gone on with. Left out: it always is. */
  canCarryOn?(build: BuildId): Promise<boolean>;
  /** Begins what is asked for. What was begun before, by this process or by one that died, is not begun again. */
  carryOut(build: WorkingBuild, asked: readonly WorkItem[]): Promise<void>;
  /**
   * After a restart: all that should be under way in the build. What is not there is begun, what is there is taken up
   * again, and what is there beyond it is ended.
   */
  reattach(build: WorkingBuild, all: readonly WorkItem[]): Promise<void>;
  /**
   * The build has ended, and so does all of it. Main's preview stays, unless the build was cancelled. Left out: as after a
   * restart, with nothing that should be under way.
   */
  close?(build: WorkingBuild, end: { readonly cancelled: boolean }): Promise<void>;
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
  | MergeWork
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
  /** What came of the last of its offers that did not get merged: its run is told so. */
  readonly answer: OfferAnswer | null;
}

export interface OfferAnswer {
  readonly offer: number;
  readonly findings: readonly Finding[];
  /** The commit that its work has to be put together with. Null: what it knows. */
  readonly main: string | null;
  /** The same was refused before. Left out: no. */
  readonly unchanged?: boolean | undefined;
}

/** What the merge queue asks for. */
export type MergeWork =
  /** Answered by `merge.tested`. */
  | {
      readonly type: "test-merge";
      readonly candidate: CandidateId;
      readonly task: string;
      readonly base: string;
      readonly commit: string;
    }
  | GateWork
  | { readonly type: "cancel-run"; readonly run: number }
  /** Moves main, if it is at `from`; if it is at `to`, that has happened already. Answered by `merge.ended`. */
  | {
      readonly type: "merge";
      readonly candidate: CandidateId;
      readonly task: string;
      readonly from: string;
      readonly to: string;
      readonly tree: string;
    };

/** One run of a gate, answered by `gate.ended`. */
export interface GateWork {
  readonly type: "gate-run";
  /** From 1, per build. */
  readonly run: number;
  readonly gate: string;
  readonly candidate: CandidateId;
  readonly task: string;
  /** What is below the candidate in the commit. Null: the candidate alone is looked at. */
  readonly base: string | null;
  readonly commit: string;
  readonly tree: string;
  /** Tasks of the candidates between main and this one: they are in the tree, too. */
  readonly ahead: readonly string[];
}
