import {
  type AttemptId,
  afterEnd,
  type BuildId,
  type BuildSettings,
  type BuildStatus,
  endText,
  type Hold,
  newId,
  taskFailureText,
} from "@slipway/contract";
import { z } from "zod";
import type { AttemptRecord, BuildRecord, NewBuild, TaskRecord } from "../ports/records.ts";
import type { StoredBuild } from "../ports/store.ts";
import { evidence } from "./fingerprint.ts";
import type { Place } from "./observe/facts.ts";
import {
  type AttemptState,
  attemptDetails,
  attemptName,
  type BuildState,
  beginPlanning,
  buildDetails,
  type Outcome,
  phaseSchema,
  type TaskState,
  taskDetails,
} from "./state.ts";

/** What a build keeps beside its state: its merge queue, and the address of main's preview. */
const beside = { queue: z.json().default(null), preview: z.string().nullable().default(null) };
export type Beside = z.output<z.ZodObject<typeof beside>>;

/** The details of a new build. */
export function newBuildDetails(settings: BuildSettings, hold: Hold, nowMs: number): NonNullable<NewBuild["details"]> {
  return toBuild(beginPlanning(settings, hold, nowMs)).details;
}

/** Granted slots are not kept: the fleet grants them in each turn. */
export function readState({ build, tasks, attempts }: StoredBuild): BuildState {
  const details = buildDetails.parse(build.details);
  return {
    ...details,
    // A build without a plan runs its stages.
    status: build.status === "planning" ? "running" : build.status,
    grantedSlots: 0,
    tasks: tasks.map(readTask),
    attempts: attempts.map(readAttempt),
  };
}

export function readBeside({ build }: StoredBuild): Beside {
  return z.object(beside).parse(build.details);
}

function readTask({ id, component, dependencies, status, attempts, details }: TaskRecord): TaskState {
  return { id, component, dependencies, status, attempts, ...taskDetails.parse(details) };
}

function readAttempt({ task, phase: reached, startedAt, heartbeatAt, details }: AttemptRecord): AttemptState {
  const times = { startedAtMs: startedAt, heardAtMs: heartbeatAt ?? startedAt };
  return { task, phase: phaseSchema.parse(reached), ...times, ...attemptDetails.parse(details) };
}

/** The fields of a build's record that turns change. */
export function toBuild(
  state: BuildState,
  kept: Beside = { queue: null, preview: null },
): Required<Pick<BuildRecord, "status" | "reason" | "details" | "priority">> {
  const { status: _status, grantedSlots: _granted, tasks: _tasks, attempts: _attempts, ...details } = state;
  return {
    status: statusOf(state),
    reason: state.pause?.reason ?? state.endReason,
    priority: state.settings.priority,
    details: toJson({ ...details, ...kept }),
  };
}

function statusOf({ status, planning }: BuildState): BuildStatus {
  return status === "running" && planning !== null ? "planning" : status;
}

export interface Change {
  readonly stored: StoredBuild;
  readonly before: BuildState;
  /** With what was reported, and nothing decided yet. */
  readonly observed: BuildState;
  readonly after: BuildState;
  readonly places: ReadonlyMap<string, Place>;
  readonly nowMs: number;
}

/** The records of tasks and attempts that have changed. */
export function changedRecords(change: Change): { tasks: TaskRecord[]; attempts: AttemptRecord[] } {
  const { stored, before, after } = change;
  const tasks = new Set(before.tasks);
  const attempts = new Set(before.attempts);
  return {
    tasks: after.tasks.filter((task) => !tasks.has(task)).map((task) => toTask(stored.build.id, task)),
    attempts: [
      ...after.attempts.filter((attempt) => !attempts.has(attempt)).map((attempt) => toAttempt(change, attempt)),
      ...endedAttempts(change),
    ],
  };
}

function toTask(build: BuildId, task: TaskState): TaskRecord {
  const { id, component, dependencies, status, attempts, ...details } = task;
  return {
    build,
    id,
    component,
    dependencies: [...dependencies],
    status,
    attempts,
    level: task.next.level,
    reason: reasonOf(task),
    details: toJson(details),
  };
}

function reasonOf({ status, trouble, failure }: TaskState): string | null {
  if (status === "satisfied") return "already on main";
  return failure === null ? trouble : taskFailureText(failure);
}

function toAttempt({ stored, places }: Change, attempt: AttemptState): AttemptRecord {
  const { task, phase: reached, startedAtMs, heardAtMs, ...details } = attempt;
  const known = stored.attempts.find((one) => isRecordOf(one, attempt));
  return {
    ...(known ?? { id: newId("att", startedAtMs), sandbox: null, run: null, score: null }),
    ...places.get(attemptName(task, attempt.number)),
    build: stored.build.id,
    task,
    status: attempt.pausedAtMs === null ? reached : "paused",
    phase: reached,
    reason: null,
    startedAt: startedAtMs,
    heartbeatAt: heardAtMs,
    endedAt: null,
    details: toJson(details),
  };
}

function endedAttempts({ stored, observed, after, nowMs }: Change): AttemptRecord[] {
  const gone = stored.attempts.filter((record) => !after.attempts.some((attempt) => isRecordOf(record, attempt)));
  return gone.map((record) => {
    const last = observed.attempts.find((attempt) => isRecordOf(record, attempt));
    return { ...record, status: "ended", reason: endOf(last?.outcome ?? null, after), endedAt: nowMs };
  });
}

function endOf(outcome: Outcome | null, { endReason }: BuildState): string {
  if (outcome === null) return endReason ?? "timed out";
  return afterEnd(outcome) === "retry" ? evidence(endText(outcome)) : outcome.reason;
}

function isRecordOf({ task, details }: AttemptRecord, attempt: AttemptState): boolean {
  return task === attempt.task && details["number"] === attempt.number;
}

function toJson(details: object): Record<string, z.core.util.JSONType> {
  return JSON.parse(JSON.stringify(details)) as Record<string, z.core.util.JSONType>;
}

export type AttemptIds = ReadonlyMap<string, AttemptId>;

/** By the attempt's name. */
export function idsOf(attempts: readonly AttemptRecord[]): AttemptIds {
  return new Map(attempts.map(({ id, task, details }) => [attemptName(task, Number(details["number"])), id]));
}
