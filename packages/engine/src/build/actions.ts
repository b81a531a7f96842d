import type { BuildEndReason, BuildStatus, End, PauseReason } from "@slipway/contract";
import { type DecisionInput, type DecisionType, decision } from "../ports/reports.ts";
import type { NewEvent } from "../ports/store.ts";
import type { NextTry, PlanningWork, WorkItem } from "../ports/work.ts";
import type { FailedTry, TaskState } from "./state.ts";

/**
 * What a turn decides, as plain data. An action names everything that tells it from others: the same one, carried out
 * again after a crash, finds what the first did.
 */
export type BuildAction =
  | AttemptAction
  /** These are their own work items. */
  | PlanningWork
  | Extract<WorkItem, { type: "check-satisfaction" }>
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
  | { readonly type: "fail-task"; readonly task: string; readonly failure: NonNullable<TaskState["failure"]> }
  | { readonly type: "warn-budget"; readonly budgetMicroUsd: number }
  | { readonly type: "pause-build"; readonly reason: PauseReason; readonly budgetMicroUsd: number }
  | { readonly type: "resume-build" }
  | { readonly type: "end-build"; readonly status: EndStatus; readonly reason: BuildEndReason };

export type AttemptAction = { readonly task: string; readonly attempt: number } & (
  | ({ readonly type: "start-attempt" } & NextTry)
  /** From its last checkpoint; its agents continue from the last finished step. */
  | { readonly type: "respawn-attempt"; readonly respawn: number }
  | { readonly type: "pause-attempt" }
  | { readonly type: "resume-attempt" }
  /** `keepSandbox`: the next attempt at the task may continue in it. */
  | { readonly type: "end-attempt"; readonly keepSandbox: boolean }
);

export type ActionOf<T extends BuildAction["type"]> = Extract<BuildAction, { type: T }>;

export type EndStatus = Extract<BuildStatus, "succeeded" | "failed" | "cancelled">;

/** The decision as those who follow the build read it: an event with the action's fields. */
export function tellDecision({ type, ...data }: BuildAction): NewEvent {
  return decision(eventTypes[type], data as never);
}

type Said<A extends BuildAction["type"]> = Omit<ActionOf<A>, "type">;

const eventTypes = {
  stage: "stage.began",
  "start-attempt": "attempt.started",
  "respawn-attempt": "attempt.respawned",
  "pause-attempt": "attempt.paused",
  "resume-attempt": "attempt.resumed",
  "end-attempt": "attempt.closed",
  "retry-task": "task.retried",
  "merge-task": "task.merged",
  "satisfy-task": "task.satisfied",
  "fail-task": "task.failed",
  "warn-budget": "budget.warned",
  "pause-build": "build.paused",
  "resume-build": "build.resumed",
  "check-satisfaction": "satisfaction.asked",
  "plan-remaining": "remaining.asked",
  "end-build": "build.ended",
} as const satisfies {
  /** An event that takes all that the action says. */
  [A in BuildAction["type"]]: { [T in DecisionType]: Said<A> extends DecisionInput<T> ? T : never }[DecisionType];
};
