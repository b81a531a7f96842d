import type { BuildEndReason, BuildStatus, End, PauseReason } from "@slipway/contract";
import type { NextTry, Stage } from "../ports/work.ts";
import type { FailedTry, TaskFailure } from "./state.ts";

/**
 * What a tick decides, as plain data. An action names all that tells it from others: the same one, carried out again
 * after a crash, finds what the first has done.
 */
export type BuildAction =
  | AttemptAction
  /** Back to pending, to be tried again as `next` says. */
  | {
      readonly type: "retry-task";
      readonly task: string;
      /** Null: it was interrupted. */
      readonly failed: FailedTry | null;
      readonly interruption?: End;
      readonly next: NextTry;
      readonly notBeforeMs: number;
    }
  | { readonly type: "merge-task"; readonly task: string }
  /** `main`: the commit that was found to have what the task is for. */
  | { readonly type: "satisfy-task"; readonly task: string; readonly main: string }
  | { readonly type: "fail-task"; readonly task: string; readonly failure: TaskFailure }
  | { readonly type: "warn-budget"; readonly budgetMicroUsd: number }
  | { readonly type: "pause-build"; readonly reason: PauseReason; readonly budgetMicroUsd: number }
  | { readonly type: "resume-build" }
  | { readonly type: "begin-stage"; readonly stage: Stage; readonly round: number }
  | { readonly type: "check-satisfaction"; readonly round: number }
  | { readonly type: "plan-remaining"; readonly round: number; readonly unsatisfied: readonly string[] }
  | { readonly type: "end-build"; readonly status: EndStatus; readonly reason: BuildEndReason };

export type AttemptAction = { readonly task: string; readonly attempt: number } & (
  | ({ readonly type: "start-attempt" } & NextTry)
  /** From its last checkpoint; its agents go on from the last finished step. */
  | { readonly type: "respawn-attempt"; readonly respawn: number }
  | { readonly type: "pause-attempt" }
  | { readonly type: "resume-attempt" }
  /** `keepSandbox`: the next attempt at the task may go on in it. */
  | { readonly type: "end-attempt"; readonly keepSandbox: boolean }
);

export type EndStatus = Extract<BuildStatus, "succeeded" | "failed" | "cancelled">;
