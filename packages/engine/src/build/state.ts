import {
  afterEnd,
  type BuildSettings,
  buildEndReasons,
  buildSettingsSchema,
  type End,
  endSchema,
  findingsSchema,
  type Hold,
  holds,
  isOnMain,
  type Plan,
  pauseReasons,
  stages,
} from "@slipway/contract";
import { z } from "zod";
import type { Kept } from "../ports/kept.ts";
import type { attemptRecordSchema, buildRecordSchema, taskRecordSchema } from "../ports/records.ts";

/**
 * Everything that the decisions of a build follow from. What is queried is kept in fields of the records, the rest in
 * their details, as these schemas read them. Times are milliseconds since 1970.
 */
const atMs = z.int();
const microUsd = z.int().min(0);

const nextTry = {
  /** Null: the first try, with nothing to mend. */
  level: z.literal([0, 1, 2, 3, 4]).nullable(),
  /** At level 0: the signature of the known fix. */
  pattern: z.string().nullable(),
  from: z.enum(["main", "last-attempt"]),
};

const failure = {
  /** What two failures of the same kind have in common: see fingerprint.ts. */
  error: z.string(),
  /** The error in its own words. Undefined: there are none. */
  message: z.string().optional(),
};

const pause = z.strictObject({
  reason: z.enum(pauseReasons),
  atMs,
  /** As it was then: a higher budget ends the pause, as does the user's order while the budget is not spent. */
  budgetMicroUsd: microUsd,
});

const planning = z.strictObject({
  stage: z.enum(stages),
  /** From 1: a stage for which there was no money begins again. */
  round: z.int(),
  /** `held`: it is the user's turn. `refused`: there was no money for it. */
  step: z.enum(["due", "underway", "held", "refused", "failed"]),
  /** Where the build waits for the user. */
  hold: z.enum(holds),
});

/** From the tasks to the check whether the intent is satisfied, and round again with what is not. */
const progress = z.strictObject({
  round: z.int(),
  /** `refused`: there was no money for the plan. */
  step: z.enum(["tasks", "checking", "checked", "planning", "refused", "unplannable"]),
  /** Criteria, by the last check. */
  unsatisfied: z.array(z.string()),
  /** Consecutive rounds that changed nothing about it. */
  unchangedRounds: z.int(),
});

export const buildDetails = z.object({
  settings: buildSettingsSchema,
  /** The user's last order. */
  wish: z.strictObject({ kind: z.enum(["run", "pause", "cancel"]), atMs }),
  pause: pause.nullable(),
  endReason: z.enum(buildEndReasons).nullable(),
  /** How long it has worked until `activeSinceMs`; pauses and holds do not count. */
  activeMs: z.number(),
  /** Null while it does not work. Moves on by the time in which nobody drove the build. */
  activeSinceMs: atMs.nullable(),
  /** When it had its last turn, while it works. Null: not known. */
  turnAtMs: atMs.nullable().default(null),
  spentMicroUsd: microUsd,
  /** The budget that the user was warned about. */
  warnedBudgetMicroUsd: microUsd.nullable(),
  /** The budget with which there was no money for a sandbox. Null: since the last pause there was. */
  refusedMicroUsd: microUsd.nullable().default(null),
  /** What comes before the tasks. Null: there is a plan. */
  planning: planning.nullable(),
  progress,
});

export const taskDetails = z.strictObject({
  estimateMs: z.number(),
  /** Attempts that failed, with what they tried. */
  failures: z.array(z.strictObject({ level: nextTry.level, pattern: nextTry.pattern, ...failure })),
  /** The last refusal of an offer: by which gate, why in one short line, and how often any gate has refused. */
  refusal: z.strictObject({ gate: z.string(), finding: z.string(), times: z.int() }).nullable().default(null),
  /** What the next attempt tries. */
  next: z.strictObject(nextTry),
  /** Troubles since the last failed try that were not the attempt's fault, except those of models. */
  interruptions: z.int(),
  /** Those of models: they are waited out for as long as the build lasts. */
  modelInterruptions: z.int().default(0),
  /** What the next attempt waits for to pass. Null: no trouble. */
  trouble: z.string().nullable().default(null),
  /** The next attempt does not begin before. */
  notBeforeMs: atMs,
  failure: z
    .discriminatedUnion("reason", [
      z.strictObject({ reason: z.literal("exhausted"), ...failure }),
      z.strictObject({ reason: z.literal("dependency"), task: z.string() }),
      z.strictObject({ reason: z.literal("build-ended") }),
    ])
    .nullable(),
});

/** How an attempt ended, and what is known beside that. */
const outcome = z.strictObject({
  ...endSchema.shape,
  /** The known fix for its error. */
  pattern: nextTry.pattern.optional(),
  /** The build's budget when money was refused. */
  budgetMicroUsd: microUsd.optional(),
  /** The commit of main that has what the task is for, without a change. */
  main: z.string().optional(),
});

/** The answer to the last of its offers that was not merged: see `OfferAnswer`. */
const answer = z.strictObject({
  offer: z.int(),
  findings: findingsSchema,
  main: z.string().nullable(),
  unchanged: z.boolean().optional(),
});

export const attemptDetails = z.strictObject({
  ...nextTry,
  /** From 1, per task. */
  number: z.int(),
  respawns: z.int(),
  pausedAtMs: atMs.nullable(),
  /** Until it is decided what follows. */
  outcome: outcome.nullable(),
  /** What it has in the merge queue. Null: nothing. */
  offer: z.strictObject({ number: z.int(), atMs }).nullable().default(null),
  answer: answer.nullable().default(null),
  /** How many of its offers came back. */
  returns: z.int().default(0),
});

export const phaseSchema = z.enum(["starting", "working", "verifying"]);

export interface BuildState extends Pick<Kept<typeof buildRecordSchema>, "status">, Kept<typeof buildDetails> {
  /** What the builds of all users leave to this one. Not kept. */
  readonly grantedSlots: number;
  readonly tasks: readonly TaskState[];
  /** Those that have not ended. */
  readonly attempts: readonly AttemptState[];
}

type KeptTask = Kept<typeof taskRecordSchema>;
/** `attempts`: how many there have been. */
export type TaskState = Pick<KeptTask, "id" | "component" | "dependencies" | "status" | "attempts"> &
  Kept<typeof taskDetails>;

export interface AttemptState extends Pick<Kept<typeof attemptRecordSchema>, "task">, Kept<typeof attemptDetails> {
  readonly phase: z.output<typeof phaseSchema>;
  /** Moves on by the time in which it is paused, or nobody drove the build. */
  readonly startedAtMs: number;
  readonly heardAtMs: number;
}

export type Pause = Kept<typeof pause>;
export type Planning = Kept<typeof planning>;
export type Progress = Kept<typeof progress>;
export type FailedTry = TaskState["failures"][number];
export type Outcome = Kept<typeof outcome>;

/** Names an attempt within its build. */
export function attemptName(task: string, number: number): string {
  return `${task}#${number}`;
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
    refusedMicroUsd: null,
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

/** Counts the build's time from now on, or stops to, as the state says. */
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
