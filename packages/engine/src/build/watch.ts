import { endAs, runChannel } from "@slipway/contract";
import { type AttemptState, type BuildState, hasEnded, isDoneBy, type Outcome, type TaskState } from "./state.ts";

/** A sandbox that misses three heartbeats is lost. */
const silenceMs = 3 * runChannel.heartbeatMs;
/** Until the first sign of life of a new sandbox. */
const startMs = 10 * 60_000;
const minuteMs = 60_000;

/** How an attempt has ended by now, even if only by the time that has passed. */
export function outcomeOf(attempt: AttemptState, task: TaskState, nowMs: number): Outcome | null {
  // The merge queue settles an offer, whatever becomes of the sandbox that it came from.
  if (attempt.offer !== null && !isDoneBy(attempt.outcome)) return null;
  if (attempt.outcome !== null) return attempt.outcome;
  if (attempt.pausedAtMs !== null || nowMs < deadlineOf(attempt, task)) return null;
  if (nowMs >= limitOf(attempt, task)) return endAs("timeout", "the attempt took too long");
  return endAs("runner_lost", "the sandbox fell silent");
}

/** When time alone changes something about an attempt that works. */
function deadlineOf(attempt: AttemptState, task: TaskState): number {
  // An offer that waits for its gates has left the sandbox; only the build's own time limit counts.
  if (attempt.phase === "verifying" || attempt.offer !== null) return Number.POSITIVE_INFINITY;
  const silent = attempt.heardAtMs + (attempt.phase === "starting" ? startMs : silenceMs);
  return Math.min(silent, limitOf(attempt, task));
}

/** Estimates are often wrong by a factor: an attempt is ended only far beyond its own. */
function limitOf({ startedAtMs }: AttemptState, { estimateMs }: TaskState): number {
  return startedAtMs + Math.min(Math.max(6 * estimateMs, 60 * minuteMs), 8 * 60 * minuteMs);
}

/** When a turn next has something to decide although nothing was reported. Null: never. */
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
