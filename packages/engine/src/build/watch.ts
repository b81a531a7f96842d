import { endAs, runChannel } from "@slipway/contract";
import { type AttemptState, type BuildState, hasEnded, isDoneBy, type Outcome, type TaskState } from "./state.ts";

/** A sandbox that says nothing for three heartbeats is taken for lost. */
const silenceMs = 3 * runChannel.heartbeatMs;
/** Until the first word of a sandbox that is being made. */
const startMs = 10 * 60_000;
const minuteMs = 60_000;

/** What came of an attempt by now, if by nothing but the time that has passed. */
export function outcomeOf(attempt: AttemptState, task: TaskState, nowMs: number): Outcome | null {
  // What the merge queue has is settled there, whatever becomes of the sandbox that it came from.
  if (attempt.offer !== null && !isDoneBy(attempt.outcome)) return null;
  if (attempt.outcome !== null) return attempt.outcome;
  if (attempt.pausedAtMs !== null || nowMs < deadlineOf(attempt, task)) return null;
  if (nowMs >= limitOf(attempt, task)) return endAs("timeout", "the attempt took too long");
  return endAs("runner_lost", "the sandbox fell silent");
}

/** When time alone changes something about an attempt that works. */
function deadlineOf(attempt: AttemptState, task: TaskState): number {
  // What waits for its gates is out of the sandbox already; only the build's own time holds.
  if (attempt.phase === "verifying" || attempt.offer !== null) return Number.POSITIVE_INFINITY;
  const silent = attempt.heardAtMs + (attempt.phase === "starting" ? startMs : silenceMs);
  return Math.min(silent, limitOf(attempt, task));
}

/** Estimates are often wrong by a factor: an attempt is only ended when it is far beyond. */
function limitOf({ startedAtMs }: AttemptState, { estimateMs }: TaskState): number {
  return startedAtMs + Math.min(Math.max(6 * estimateMs, 60 * minuteMs), 8 * 60 * minuteMs);
}

/** The next moment at which a tick can decide something though nothing has come in. Null: there is none. */
export function nextWakeMs(state: BuildState, nowMs: number): number | null {
  if (hasEnded(state) || state.activeSinceMs === null) return null;
  const tasks = new Map(state.tasks.map((task) => [task.id, task]));
  const deadlines = state.attempts.flatMap((attempt) => {
    const task = tasks.get(attempt.task);
    return task === undefined || attempt.pausedAtMs !== null ? [] : [deadlineOf(attempt, task)];
  });
  const waits = state.tasks.filter(({ status }) => status === "pending").map(({ notBeforeMs }) => notBeforeMs);
  const buildDeadline = state.activeSinceMs + state.settings.timeoutMs - state.activeMs;
  return Math.min(buildDeadline, ...deadlines, ...waits.filter((atMs) => atMs > nowMs));
}
