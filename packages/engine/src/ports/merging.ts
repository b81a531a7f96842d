import type { AttemptId, BuildId, Finding } from "@slipway/contract";
import type { CandidateRecord } from "./records.ts";
import type { Report } from "./reports.ts";
import type { BuildRecords, NewEvent } from "./store.ts";
import type { MergeWork } from "./work.ts";

/**
 * The merge queue's part of a build's turn: pipeline.ts hands it to the build. The build keeps the queue and never
 * reads it.
 */
export type MergeTurn = (input: MergingInput) => MergingTurn;

/** After a restart: everything that the queue should have under way. */
export type MergesUnderway = (kept: KeptQueue) => readonly MergeWork[];

/** Null: there is no main yet. */
export type KeptQueue = BuildRecords["intents"]["intent"];

export interface MergingInput {
  readonly build: BuildId;
  readonly kept: KeptQueue;
  /** In order. */
  readonly reports: readonly Report[];
  readonly wish: "run" | "pause" | "cancel";
  /** Gates that may run at the same time. */
  readonly slots: number;
  tasks(): readonly MergingTask[];
  /** Those that have not ended. */
  readonly attempts: readonly MergingAttempt[];
  /** Those that are neither merged nor rejected. */
  readonly candidates: readonly CandidateRecord[];
  readonly nowMs: number;
}

interface MergingTask {
  readonly id: string;
  readonly dependencies: readonly string[];
  /** How long the task's dependents take at least. */
  readonly tailMs: number;
}

interface MergingAttempt {
  readonly id: AttemptId;
  readonly task: string;
  readonly number: number;
  readonly respawn: number;
}

export interface MergingTurn {
  readonly kept: KeptQueue;
  /** The answers to offers. */
  readonly settled: readonly SettledOffer[];
  readonly items: readonly MergeWork[];
  readonly records: {
    readonly [K in "candidates" | "gateResults" | "merges" | "disputes"]: readonly BuildRecords[K][];
  };
  readonly events: readonly NewEvent[];
  /** The task for which a move of main is asked for; whether it has happened is not known yet. */
  readonly moving: string | null;
  /** When there is something to decide although nothing was reported. Null: never. */
  readonly wakeMs: number | null;
}

/** What became of an attempt's offer. */
export type SettledOffer = { readonly task: string; readonly attempt: number; readonly offer: number } & (
  | {
      readonly type: "merged";
      /** What it has changed. */
      readonly fix: string | undefined;
    }
  /** Nothing to merge: main has, at this commit, what the task is for. */
  | { readonly type: "satisfied"; readonly main: string }
  | {
      readonly type: "returned";
      readonly findings: readonly Finding[];
      /** The commit that its work must be combined with. */
      readonly main: string | null;
      /** The same was refused before, and was not tested again. */
      readonly unchanged: boolean;
    }
);
