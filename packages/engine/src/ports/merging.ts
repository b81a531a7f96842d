import type { AttemptId, BuildId, Finding } from "@slipway/contract";
import type { CandidateRecord, GateResultRecord, MergeRecord } from "./records.ts";
import type { Report } from "./reports.ts";
import type { BuildRecords, NewEvent } from "./store.ts";
import type { MergeWork } from "./work.ts";

/** The merge queue as a turn of a build sees it. Its state is the build's to keep, and nobody else's to read. */
export interface Merging {
  turn(input: MergingInput): MergingTurn;
  /** After a restart: all that should be under way. */
  underway(kept: KeptQueue): readonly MergeWork[];
}

/** Null: there is no main yet. */
export type KeptQueue = BuildRecords["intents"]["intent"];

export interface MergingInput {
  readonly build: BuildId;
  readonly kept: KeptQueue;
  /** What has come in, in order. */
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

export interface MergingTask {
  readonly id: string;
  readonly dependencies: readonly string[];
  /** How long what waits for it takes at least. */
  readonly tailMs: number;
}

export interface MergingAttempt {
  readonly id: AttemptId;
  readonly task: string;
  readonly number: number;
  readonly respawn: number;
}

export interface MergingTurn {
  readonly kept: KeptQueue;
  /** What became of offers. */
  readonly settled: readonly SettledOffer[];
  readonly items: readonly MergeWork[];
  readonly records: {
    readonly candidates: readonly CandidateRecord[];
    readonly gateResults: readonly GateResultRecord[];
    readonly merges: readonly MergeRecord[];
  };
  readonly events: readonly NewEvent[];
  /** The task for which a move of main is asked for, and not known yet whether it has happened. */
  readonly moving: string | null;
  /** When something can be decided though nothing has come in. Null: there is no such moment. */
  readonly wakeMs: number | null;
}

/** `main`: what its work has to be put together with. */
export type SettledOffer = {
  readonly task: string;
  readonly attempt: number;
  readonly offer: number;
} /** `fix`: what it has changed. */ & (
  | { readonly type: "merged"; readonly fix: string | undefined }
  /** There is nothing to merge: main has, at this commit, what the task is for. */
  | { readonly type: "satisfied"; readonly main: string }
  /** `unchanged`: the same was refused before, and is not looked at again. */
  | {
      readonly type: "returned";
      readonly findings: readonly Finding[];
      readonly main: string | null;
      readonly unchanged: boolean;
    }
);
