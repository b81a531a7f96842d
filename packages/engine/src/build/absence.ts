import { coordinatorHeartbeatMs } from "@slipway/contract";
import type { AttemptState, BuildState } from "./state.ts";

/** By how much a turn may be late that was only late. */
const lateMs = 10_000;
/** Turns without news that are as close as this to the last one that was kept need not be: they make the next one no later. */
const closeMs = lateMs / 2;

/**
 * The state without the time in which nobody could take a turn: its server was down, or the machine asleep. Who drives a build
 * takes one at each heartbeat, so what is beyond the next one counts neither for the build nor for its attempts.
 */
export function withoutAbsence(state: BuildState, nowMs: number): BuildState {
  const absentMs = nowMs - (state.turnAtMs ?? nowMs) - coordinatorHeartbeatMs;
  if (absentMs <= lateMs) return state;
  return {
    ...state,
    activeSinceMs: state.activeSinceMs === null ? null : state.activeSinceMs + absentMs,
    attempts: state.attempts.map((attempt) => movedOn(attempt, absentMs, nowMs)),
  };
}

/** Whether a turn without news is kept all the same, for the time that it was taken at. */
export function isTimeKept({ activeSinceMs, turnAtMs }: BuildState, nowMs: number): boolean {
  return activeSinceMs !== null && nowMs - (turnAtMs ?? 0) >= closeMs;
}

/** What is paused moves on by all of its pause when that ends. A sign of life was due that nobody could hear. */
function movedOn(attempt: AttemptState, absentMs: number, nowMs: number): AttemptState {
  if (attempt.pausedAtMs !== null) return attempt;
  const { startedAtMs, offer } = attempt;
  return {
    ...attempt,
    startedAtMs: startedAtMs + absentMs,
    heardAtMs: nowMs,
    offer: offer && { ...offer, atMs: offer.atMs + absentMs },
  };
}
