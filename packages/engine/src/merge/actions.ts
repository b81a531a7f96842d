import type { Finding } from "@slipway/contract";
import type { GateRun, PendingMerge, Suspicion } from "./state.ts";

/**
 * What a turn decides about the merge queue, as plain data. An action names all that tells it from others: the same one,
 * carried out again after a crash, finds what the first has done.
 */
export type MergeAction =
  /** To be answered by what comes of it; `candidate` is whose commit it is. */
  | { readonly type: "test-merge"; readonly candidate: string; readonly base: string; readonly commit: string }
  | ({ readonly type: "start-run" } & Omit<GateRun, "startedAtMs">)
  /** `overdue`: it counts as broken. Else nobody needs it any more. */
  | { readonly type: "cancel-run"; readonly run: number; readonly overdue: boolean }
  /** From now on it is tested on top of those ahead of it, and those behind on top of it. */
  | { readonly type: "line-up"; readonly candidate: string; readonly place: number }
  /** What it depends on is not ahead of it any more. */
  | { readonly type: "leave-line"; readonly candidate: string }
  /** Those behind go on without it while its failure is looked at again. */
  | ({ readonly type: "set-aside"; readonly candidate: string } & Suspicion)
  /** The failure was a flake. */
  | { readonly type: "clear"; readonly candidate: string }
  /** Moves main if it is at `from`; if it is at `to`, that has happened already. */
  | ({ readonly type: "merge" } & PendingMerge)
  /** Main, as it is at this commit, has what the task is for: nothing has to be merged. */
  | { readonly type: "satisfy"; readonly candidate: string; readonly task: string; readonly main: string }
  /** Back to its attempt. `broken`: the gate could not be run on it. `unchanged`: it had refused the same files before. */
  | {
      readonly type: "reject";
      readonly candidate: string;
      readonly gate: string;
      readonly tree: string;
      readonly broken: boolean;
      readonly unchanged: boolean;
      readonly findings: readonly Finding[];
    }
  /** Back to its attempt, with what main has at `paths` and what the candidate has. */
  | {
      readonly type: "return-conflict";
      readonly candidate: string;
      readonly main: string;
      readonly commit: string;
      readonly paths: readonly string[];
    }
  /** The queue is cancelled. */
  | { readonly type: "discard"; readonly candidate: string };
