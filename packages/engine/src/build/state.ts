import {
  afterEnd,
  type BuildEndReason,
  type BuildSettings,
  type BuildStatus,
  type End,
  type Hold,
  isOnMain,
  type PauseReason,
  type Plan,
  type TaskStatus,
} from "@slipway/contract";
import type { Level, NextTry, OfferAnswer, Stage } from "../ports/work.ts";

/** All that the decisions of a build follow from. Plain data; times are milliseconds since 1970. */
export interface BuildState {
  readonly status: BuildStatus;
  readonly settings: BuildSettings;
  /** What the user last said. */
  readonly wish: { readonly kind: "run" | "pause" | "cancel"; readonly atMs: number };
  readonly pause: Pause | null;
  readonly endReason: BuildEndReason | null;
  /** How long it has worked until `activeSinceMs`; pauses and holds do not count. */
  readonly activeMs: number;
  /** Null while it does not work. Moves on by the time that nobody drove the build. */
  readonly activeSinceMs: number | null;
  /** When it had its last turn, while it works. Null: not known. */
  readonly turnAtMs: number | null;
  readonly spentMicroUsd: number;
  /** The budget that the user has been warned about. */
  readonly warnedBudgetMicroUsd: number | null;
  /** What the builds of all users leave to this one. */
  readonly grantedSlots: number;
  /** What comes before the tasks. Null: there is a plan. */
  readonly planning: Planning | null;
  readonly tasks: readonly TaskState[];
  /** Those that have not ended. */
  readonly attempts: readonly AttemptState[];
  readonly progress: Progress;
}

export interface Pause {
  readonly reason: PauseReason;
  readonly atMs: number;
  /** As it was then: a budget that is raised lets the build go on, as does the user's word while it is not spent. */
  readonly budgetMicroUsd: number;
}

export interface Planning {
  readonly stage: Stage;
  /** From 1: a stage for which there was no money is begun again. */
  readonly round: number;
  /** `held`: the user has the next word. `refused`: there was no money for it. */
  readonly step: "due" | "underway" | "held" | "refused" | "failed";
  /** Where the build waits for the user. */
  readonly hold: Hold;
}

export interface TaskState {
  readonly id: string;
  readonly component: string;
  readonly dependencies: readonly string[];
  readonly estimateMs: number;
  readonly status: TaskStatus;
  /** How many attempts there have been. */
  readonly attempts: number;
  /** Those that failed, by the level of what they tried. */
  readonly failures: readonly FailedTry[];
  /** What came back of its offers. Null: nothing. */
  readonly refusal: Refusal | null;
  /** What the next attempt tries. */
  readonly next: NextTry;
  /** Troubles since the last failed try that were not the attempt's own, without those of models. */
  readonly interruptions: number;
  /** Those of models: they are waited out for as long as the build lasts. */
  readonly modelInterruptions: number;
  /** What the next attempt waits to pass. Null: no trouble. */
  readonly trouble: string | null;
  /** The next attempt does not begin before. */
  readonly notBeforeMs: number;
  readonly failure: TaskFailure | null;
}

export interface Refusal {
  /** Of the last one. */
  readonly gate: string;
  /** Why, in one short line. */
  readonly finding: string;
  /** How often, by any gate. */
  readonly times: number;
}

export interface FailedTry {
  readonly level: Level | null;
  readonly pattern: string | null;
  /** What two failures of the same kind have in common: see fingerprint.ts. */
  readonly error: string;
  /** The error in its own words. Undefined: there are no other. */
  readonly message?: string | undefined;
}

export type TaskFailure =
  | ({ readonly reason: "exhausted" } & Pick<FailedTry, "error" | "message">)
  | { readonly reason: "dependency"; readonly task: string }
  | { readonly reason: "build-ended" };

export interface AttemptState extends NextTry {
  readonly task: string;
  /** From 1, per task. */
  readonly number: number;
  readonly phase: "starting" | "working" | "verifying";
  /** Moves on by the time that it is paused, or that nobody drove the build. */
  readonly startedAtMs: number;
  readonly heardAtMs: number;
  readonly pausedAtMs: number | null;
  readonly respawns: number;
  /** What came of it, until it is decided what follows. */
  readonly outcome: Outcome | null;
  /** What it has in the merge queue. Null: nothing. */
  readonly offer: { readonly number: number; readonly atMs: number } | null;
  /** What came of the last of its offers that did not get merged. */
  readonly answer: OfferAnswer | null;
  /** How many of its offers came back. */
  readonly returns: number;
}

/** How an attempt ended, and what is known beside that. */
export interface Outcome extends End {
  /** The fix that is known for its error. */
  readonly pattern?: string | null | undefined;
  /** The build's budget when money was refused. */
  readonly budgetMicroUsd?: number | undefined;
  /** The commit of main that has what the task is for, without a change. */
  readonly main?: string | undefined;
}

/** From the tasks to the check whether the intent is satisfied, and round again with what is not. */
export interface Progress {
  readonly round: number;
  /** `refused`: there was no money for the plan. */
  readonly step: "tasks" | "checking" | "checked" | "planning" | "refused" | "unplannable";
  /** Criteria, by the last check. */
  readonly unsatisfied: readonly string[];
  /** Rounds in a row that have changed nothing about it. */
  readonly unchangedRounds: number;
}

/** A build that has nothing but its request. */
export function beginPlanning(settings: BuildSettings, hold: Hold, nowMs: number): BuildState {
  const planning: Planning = { stage: "draft", round: 1, step: "due", hold };
  return { ...beginBuild({ tasks: [] }, settings, nowMs), planning };
}

/** A build that has its plan and may begin. */
export function beginBuild(plan: Pick<Plan, "tasks">, settings: BuildSettings, nowMs: number): BuildState {
  return {
    status: "running",
    settings,
    wish: { kind: "run", atMs: nowMs },
    pause: null,
    endReason: null,
    activeMs: 0,
    activeSinceMs: nowMs,
    turnAtMs: nowMs,
    spentMicroUsd: 0,
    warnedBudgetMicroUsd: null,
    grantedSlots: settings.slots,
    planning: null,
    tasks: plan.tasks.map(beginTask),
    attempts: [],
    progress: { round: 1, step: "tasks", unsatisfied: [], unchangedRounds: 0 },
  };
}

export function beginTask(task: Plan["tasks"][number]): TaskState {
  return {
    id: task.id,
    component: task.component,
    dependencies: task.dependencies,
    estimateMs: Math.round(task.estimate.minutes * 60_000),
    status: "pending",
    attempts: 0,
    failures: [],
    refusal: null,
    next: { level: null, pattern: null, from: "main" },
    interruptions: 0,
    modelInterruptions: 0,
    trouble: null,
    notBeforeMs: 0,
    failure: null,
  };
}

/** The task is on main, whatever becomes of the attempt. */
export function isDoneBy(end: End | null): boolean {
  return end !== null && afterEnd(end) === "done";
}

export function hasEnded({ status }: Pick<BuildState, "status">): boolean {
  return status === "succeeded" || status === "failed" || status === "cancelled";
}

export function isDone({ status }: TaskState): boolean {
  return isOnMain(status) || status === "failed";
}

/** With its time counted from now on, or not, as the state wants it. */
export function timed(state: BuildState, nowMs: number): BuildState {
  const works = state.status === "running" && state.planning?.step !== "held";
  if (works === (state.activeSinceMs !== null)) return state;
  return works
    ? { ...state, activeSinceMs: nowMs }
    : { ...state, activeMs: workedMs(state, nowMs), activeSinceMs: null };
}

/** How long the build has worked. */
export function workedMs({ activeMs, activeSinceMs }: BuildState, nowMs: number): number {
  return activeMs + (activeSinceMs === null ? 0 : Math.max(0, nowMs - activeSinceMs));
}
