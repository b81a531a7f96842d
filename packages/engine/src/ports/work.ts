import type { AttemptId, BuildId, BuildMode, CandidateId, CheckPlace, Finding, Stage } from "@slipway/contract";

/**
 * Carries out what a build decides. Nothing here waits for the work itself: its result is reported to the store
 * (see reports.ts), and the build's bell rings.
 */
export interface Work {
  /** Whether this server has what the build made so far, so that it can continue. Left out: it always has. */
  canCarryOn?(build: BuildId): Promise<boolean>;
  /** Begins what is asked for. Does not begin again what this process or an earlier one has begun. */
  carryOut(build: WorkingBuild, asked: readonly WorkItem[]): Promise<void>;
  /** After a restart: begins or takes up everything that should be under way in the build, and ends everything else. */
  reattach(build: WorkingBuild, all: readonly WorkItem[]): Promise<void>;
  /**
   * Ends everything of a build that has ended. Main's preview stays, unless the build was cancelled. Left out: the
   * same as to reattach with nothing under way.
   */
  close?(build: WorkingBuild, end: { readonly cancelled: boolean }): Promise<void>;
  /** The last sign of life of an attempt that this process has heard. */
  heardAtMs(build: BuildId, task: string, attempt: number): number | undefined;
}

/** The build that work is done for. */
export interface WorkingBuild {
  readonly id: BuildId;
  readonly account: string;
  readonly project: string;
  readonly mode: BuildMode;
  readonly request: string;
}

/** An item names everything that tells it from others. */
export type WorkItem =
  | PlanningWork
  | AttemptWork
  | { readonly type: "end-attempt"; readonly id: AttemptId; readonly task: string; readonly keepSandbox: boolean }
  | MergeWork
  /** Whether main satisfies the intent, answered by `satisfaction.checked`. */
  | { readonly type: "check-satisfaction"; readonly round: number };

export type PlanningWork =
  /** `round`: from 1; a stage that failed for lack of money begins again in the next one. */
  | { readonly type: "stage"; readonly stage: Stage; readonly round: number }
  | { readonly type: "plan-remaining"; readonly round: number; readonly unsatisfied: readonly string[] };

/** Whether a check is wrong that work keeps failing; a wrong one is compiled anew. Answered by `dispute.settled`. */
export interface DisputeWork {
  readonly type: "settle-dispute";
  readonly dispute: number;
  /** From 1; the user may send a dispute back. */
  readonly round: number;
  readonly at: CheckPlace;
  /** Those that failed there, oldest first. */
  readonly candidates: readonly CandidateId[];
  /** A commit of main without their work. */
  readonly without: string;
  /** Why the check is wrong, by the user. Null: the judge decides whether it is. */
  readonly ruling: string | null;
}

/** How an attempt should be: it is started, respawned, paused or resumed to get there. */
export interface AttemptWork extends NextTry {
  readonly type: "attempt";
  readonly id: AttemptId;
  /** Of the plan. */
  readonly task: string;
  /** From 1, per task. */
  readonly number: number;
  /** How often it was respawned from its last checkpoint. A higher number than before: its sandbox is gone. */
  readonly respawn: number;
  readonly paused: boolean;
  /** The answer to the last of its offers that was not merged; its run is told. */
  readonly answer: OfferAnswer | null;
}

/** What an attempt tries, by error escalation. */
export interface NextTry {
  /** Null: the first try, with nothing to mend. */
  readonly level: Level | null;
  /** At level 0: the signature of the known fix. */
  readonly pattern: string | null;
  /** Where it begins: with main's files, or in the sandbox of the attempt before. */
  readonly from: "main" | "last-attempt";
}

/**
 * 0: a known pattern, 1: a direct fix, 2: deep analysis, 3: the component is rewritten, 4: the feature is built anew.
 */
export type Level = 0 | 1 | 2 | 3 | 4;

export interface OfferAnswer {
  readonly offer: number;
  readonly findings: readonly Finding[];
  /** The commit that its work must be combined with. Null: the one it knows. */
  readonly main: string | null;
  /** The same was refused before. Left out: no. */
  readonly unchanged?: boolean | undefined;
}

/** What the merge queue asks for. */
export type MergeWork =
  | DisputeWork
  /** Answered by `merge.tested`. */
  | ({ readonly type: "test-merge"; readonly base: string; readonly commit: string } & OfCandidate)
  | GateWork
  | { readonly type: "cancel-run"; readonly run: number }
  /** Moves main if it is at `from`; if it is at `to`, that has happened already. Answered by `merge.ended`. */
  | ({ readonly type: "merge"; readonly from: string; readonly to: string; readonly tree: string } & OfCandidate);

/** Whose commit it is about. */
export interface OfCandidate {
  readonly candidate: CandidateId;
  readonly task: string;
}

/** One run of a gate, answered by `gate.ended`. */
export interface GateWork extends OfCandidate {
  readonly type: "gate-run";
  /** From 1, per build. */
  readonly run: number;
  readonly gate: string;
  /** What is below the candidate in the commit. Null: the candidate is tested alone. */
  readonly base: string | null;
  readonly commit: string;
  readonly tree: string;
  /** Tasks of the candidates between main and this one: the tree contains them. */
  readonly ahead: readonly string[];
}
