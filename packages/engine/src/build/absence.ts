import { coordinatorHeartbeatMs } from "@slipway/contract";
import type { AttemptState, BuildState } from "./state.ts";

/** A turn that is later than this was held up by an absence. */
const lateMs = 10_000;
/** A turn without news that is this close to the last kept one is not kept: it makes the next one no later. */
const closeMs = lateMs / 2;

/**
 * The state without the time in which nobody could take a turn: its server was down, or the machine asleep. A driver
 * takes a turn at each heartbeat, so time beyond the next one counts neither for the build nor for its attempts.
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

/** Whether a turn without news is kept, for the time at which it was taken. */
export function isTimeKept({ activeSinceMs, turnAtMs }: BuildState, nowMs: number): boolean {
  return activeSinceMs !== null && nowMs - (turnAtMs ?? 0) >= closeMs;
}

/** A paused attempt moves on by its whole pause when that ends. Nobody could hear the signs of life that were due. */
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
