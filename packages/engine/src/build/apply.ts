import { endText } from "@slipway/contract";
import type { ActionOf, AttemptAction, BuildAction } from "./actions.ts";
import { type AttemptState, type BuildState, type TaskState, timed } from "./state.ts";

/** The state once the actions are taken. */
export function applyActions(state: BuildState, actions: readonly BuildAction[], nowMs: number): BuildState {
  return actions.reduce((current, action) => applyAction(current, action, nowMs), state);
}

function applyAction(state: BuildState, action: BuildAction, nowMs: number): BuildState {
  switch (action.type) {
    case "start-attempt":
      return started(state, action, nowMs);
    case "end-attempt":
      return { ...state, attempts: state.attempts.filter((attempt) => !isOf(attempt, action)) };
    case "respawn-attempt":
      return changeAttempt(state, action, (attempt) => ({
        ...resumed(attempt, nowMs),
        phase: "starting",
        respawns: action.respawn,
      }));
    case "pause-attempt":
      return changeAttempt(state, action, (attempt) => ({ ...attempt, pausedAtMs: nowMs, outcome: null }));
    case "resume-attempt":
      return changeAttempt(state, action, (attempt) => resumed(attempt, nowMs));
    case "retry-task":
      return changeTask(state, action.task, (task) => retried(task, action));
    case "merge-task":
      return changeTask(state, action.task, (task) => ({ ...task, status: "merged" }));
    case "satisfy-task":
      return changeTask(state, action.task, (task) => ({ ...task, status: "satisfied" }));
    case "fail-task":
      return changeTask(state, action.task, (task) => ({ ...task, status: "failed", failure: action.failure }));
    case "warn-budget":
      return { ...state, warnedBudgetMicroUsd: action.budgetMicroUsd };
    case "pause-build":
      return timed(paused(state, action, nowMs), nowMs);
    case "resume-build":
      return timed(withRefusedDue({ ...state, status: "running", pause: null, refusedMicroUsd: null }), nowMs);
    case "stage":
      return { ...state, planning: state.planning && { ...state.planning, step: "underway" } };
    case "check-satisfaction":
      return { ...state, progress: { ...state.progress, step: "checking" } };
    case "plan-remaining":
      return { ...state, progress: { ...state.progress, step: "planning" } };
    case "end-build":
      return timed({ ...state, status: action.status, pause: null, endReason: action.reason }, nowMs);
  }
}

function started(
  state: BuildState,
  { task, attempt, level, pattern, from }: ActionOf<"start-attempt">,
  nowMs: number,
): BuildState {
  const fresh: AttemptState = {
    task,
    number: attempt,
    level,
    pattern,
    from,
    phase: "starting",
    startedAtMs: nowMs,
    heardAtMs: nowMs,
    pausedAtMs: null,
    respawns: 0,
    outcome: null,
    offer: null,
    answer: null,
    returns: 0,
  };
  const assigned = changeTask(state, task, (known) => ({
    ...known,
    status: "assigned",
    attempts: attempt,
    trouble: null,
  }));
  return { ...assigned, attempts: [...state.attempts, fresh] };
}

function resumed(attempt: AttemptState, nowMs: number): AttemptState {
  const pausedMs = nowMs - (attempt.pausedAtMs ?? nowMs);
  const startedAtMs = attempt.startedAtMs + pausedMs;
  return { ...attempt, pausedAtMs: null, startedAtMs, heardAtMs: nowMs, outcome: null };
}

function retried(task: TaskState, { failed, interruption, next, notBeforeMs }: ActionOf<"retry-task">): TaskState {
  const pending = { ...task, status: "pending", next, notBeforeMs } as const;
  if (failed !== null) {
    const failures = [...task.failures, failed];
    return { ...pending, failures, interruptions: 0, modelInterruptions: 0, trouble: null };
  }
  const count = interruption?.by === "model" ? "modelInterruptions" : "interruptions";
  return { ...pending, [count]: task[count] + 1, trouble: interruption === undefined ? null : endText(interruption) };
}

function paused(state: BuildState, { reason, budgetMicroUsd }: ActionOf<"pause-build">, nowMs: number): BuildState {
  const { progress } = state;
  return {
    ...state,
    status: "paused",
    pause: { reason, atMs: nowMs, budgetMicroUsd },
    // A stuck build that is resumed gets some more rounds.
    progress: reason === "stuck" ? { ...progress, unchangedRounds: 0 } : progress,
  };
}

/** What there was no money for begins again. */
function withRefusedDue(state: BuildState): BuildState {
  const { planning, progress } = state;
  return {
    ...state,
    planning: planning?.step === "refused" ? { ...planning, step: "due", round: planning.round + 1 } : planning,
    progress: progress.step === "refused" ? { ...progress, step: "checked" } : progress,
  };
}

function changeTask(state: BuildState, id: string, change: (task: TaskState) => TaskState): BuildState {
  return { ...state, tasks: state.tasks.map((task) => (task.id === id ? change(task) : task)) };
}

type AttemptName = Pick<AttemptAction, "task" | "attempt">;

/** An attempt that has ended already does not change. */
export function changeAttempt(
  state: BuildState,
  name: AttemptName,
  change: (attempt: AttemptState) => AttemptState,
): BuildState {
  return { ...state, attempts: state.attempts.map((attempt) => (isOf(attempt, name) ? change(attempt) : attempt)) };
}

function isOf(attempt: AttemptState, name: AttemptName): boolean {
  return attempt.task === name.task && attempt.number === name.attempt;
}
