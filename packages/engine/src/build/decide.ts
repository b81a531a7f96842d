import { type BuildEndReason, compareIds } from "@slipway/contract";
import type { BuildAction, EndStatus } from "./actions.ts";
import { applyActions } from "./apply.ts";
import { finish } from "./finish.ts";
import { watchMoney } from "./money.ts";
import { failBlocked, settleMerged, settleOutcomes } from "./outcomes.ts";
import { pauseOrResume } from "./pause.ts";
import { startReady } from "./schedule.ts";
import { type BuildState, hasEnded, isDone, workedMs } from "./state.ts";

/** Each sees the state as the ones before leave it. */
const steps = [
  settleMerged,
  endEarly,
  settleOutcomes,
  watchMoney,
  pauseOrResume,
  beginStage,
  failBlocked,
  startReady,
  finish,
];

/**
 * What a build does next. The same state gives the same actions, in whatever order its tasks and attempts are listed;
 * and once they are applied there is nothing more to do until something happens or time passes.
 */
export function decide(state: BuildState, nowMs: number): readonly BuildAction[] {
  let current = inOrder(state);
  const decided: BuildAction[] = [];
  for (const step of steps) {
    if (hasEnded(current)) break;
    const actions = step(current, nowMs);
    current = applyActions(current, actions, nowMs);
    decided.push(...actions);
  }
  return decided;
}

/** The user's cancel and the build's time limit end everything, whatever else is going on. */
function endEarly(state: BuildState, nowMs: number): BuildAction[] {
  const end = earlyEndOf(state, nowMs);
  return end === undefined ? [] : endAll(state, end.status, end.reason);
}

export function earlyEndOf(state: BuildState, nowMs: number): EarlyEnd | undefined {
  if (state.wish.kind === "cancel") return { status: "cancelled", reason: "cancelled" };
  if (workedMs(state, nowMs) >= state.settings.timeoutMs) return { status: "failed", reason: "timeout" };
  return undefined;
}

/** The part of an early end that need not wait for a move of main for this task. */
export function leaveAllBut(task: string, { attempts }: BuildState): BuildAction[] {
  return endAttempts(attempts.filter((attempt) => attempt.task !== task));
}

interface EarlyEnd {
  readonly status: EndStatus;
  readonly reason: BuildEndReason;
}

/** Up to the plan, one stage after the other. */
function beginStage({ status, planning }: BuildState): BuildAction[] {
  if (status !== "running" || planning === null) return [];
  if (planning.step === "failed") return [{ type: "end-build", status: "failed", reason: "unplannable" }];
  return planning.step === "due" ? [{ type: "stage", stage: planning.stage, round: planning.round }] : [];
}

function endAll({ attempts, tasks }: BuildState, status: EndStatus, reason: BuildEndReason): BuildAction[] {
  return [
    ...endAttempts(attempts),
    ...tasks
      .filter((task) => !isDone(task))
      .map(({ id }) => ({ type: "fail-task", task: id, failure: { reason: "build-ended" } }) as const),
    { type: "end-build", status, reason },
  ];
}

function endAttempts(attempts: BuildState["attempts"]): BuildAction[] {
  return attempts.map(({ task, number }) => ({ type: "end-attempt", task, attempt: number, keepSandbox: false }));
}

function inOrder(state: BuildState): BuildState {
  return {
    ...state,
    tasks: state.tasks.toSorted((a, b) => compareIds(a.id, b.id)),
    attempts: state.attempts.toSorted((a, b) => compareIds(a.task, b.task) || a.number - b.number),
  };
}
