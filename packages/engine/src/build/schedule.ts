import { compareIds, isOnMain, tailsOf } from "@slipway/contract";
import type { BuildAction } from "./actions.ts";
import { type AttemptState, type BuildState, isDone, type TaskState } from "./state.ts";

/**
 * Fills the free slots: first with paused attempts, then with tasks whose dependencies are on main, longest path
 * first.
 */
export function startReady(state: BuildState, nowMs: number): BuildAction[] {
  if (state.status !== "running") return [];
  const { settings, grantedSlots, attempts, tasks } = state;
  const working = attempts.filter(({ pausedAtMs }) => pausedAtMs === null).length;
  const free = Math.min(settings.slots, grantedSlots) - working;
  if (free <= 0) return [];
  const tails = tailsOf(
    tasks.filter((task) => !isDone(task)),
    ({ estimateMs }) => estimateMs,
  );
  const longestFirst = (a: string, b: string) => (tails.get(b) ?? 0) - (tails.get(a) ?? 0) || compareIds(a, b);
  const paused = attempts
    .filter(({ pausedAtMs }) => pausedAtMs !== null)
    .toSorted((a, b) => longestFirst(a.task, b.task));
  const ready = readyTasks(tasks, nowMs).toSorted((a, b) => longestFirst(a.id, b.id));
  return [...paused.map(goOn), ...ready.map(start)].slice(0, free);
}

export function readyTasks(tasks: readonly TaskState[], nowMs: number): TaskState[] {
  const done = new Set(tasks.filter(({ status }) => isOnMain(status)).map(({ id }) => id));
  return tasks.filter(
    ({ status, notBeforeMs, dependencies }) =>
      status === "pending" && notBeforeMs <= nowMs && dependencies.every((id) => done.has(id)),
  );
}

function start({ id, attempts, next }: TaskState): BuildAction {
  return { type: "start-attempt", task: id, attempt: attempts + 1, ...next };
}

/** A sandbox that died during the pause is respawned like any other. */
function goOn({ task, number, respawns, outcome, offer }: AttemptState): BuildAction {
  return outcome?.reason === "runner_lost" && offer === null
    ? { type: "respawn-attempt", task, attempt: number, respawn: respawns + 1 }
    : { type: "resume-attempt", task, attempt: number };
}
