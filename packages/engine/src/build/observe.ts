import { compareIds, type Plan } from "@slipway/contract";
import type { OfferAnswer, Stage } from "../ports/work.ts";
import { changeAttempt } from "./apply.ts";
import { briefly } from "./fingerprint.ts";
import {
  type AttemptState,
  type BuildState,
  beginTask,
  hasEnded,
  isDoneBy,
  type Outcome,
  type Planning,
  type Progress,
  timed,
} from "./state.ts";

/** What has happened outside. Reports can come twice, late, or about what is gone: then they change nothing. */
export type Observation =
  /** A stage has made what it is for. */
  | { readonly type: "stage-done"; readonly stage: Exclude<Stage, "plan"> }
  | ({ readonly type: "stage-failed"; readonly stage: Stage; readonly code: string } & Refusal)
  /** The user has no more to say about the intent. */
  | { readonly type: "intent-released" }
  | { readonly type: "planned"; readonly tasks: Plan["tasks"] }
  /** The sandbox of the attempt gave a sign of life. */
  | { readonly type: "attempt-heard"; readonly task: string; readonly attempt: number }
  /** Its result wants to be merged. `offer`: the merge queue has it, and says what becomes of it. */
  | { readonly type: "attempt-offered"; readonly task: string; readonly attempt: number; readonly offer?: number }
  /** What it offered is not merged. */
  | { readonly type: "attempt-returned"; readonly task: string; readonly attempt: number; readonly answer: OfferAnswer }
  | { readonly type: "attempt-ended"; readonly task: string; readonly attempt: number; readonly outcome: Outcome }
  /** All that the ledger has for the build. */
  | { readonly type: "spent"; readonly microUsd: number }
  | { readonly type: "slots-granted"; readonly slots: number }
  | { readonly type: "satisfaction-checked"; readonly round: number; readonly unsatisfied: readonly string[] }
  | { readonly type: "remaining-planned"; readonly round: number; readonly tasks: Plan["tasks"] }
  | ({ readonly type: "remaining-refused" } & Refusal)
  | { readonly type: "remaining-unplannable"; readonly round: number };

/** `budgetMicroUsd`: of the build, before it was asked for. */
interface Refusal {
  readonly round: number;
  readonly budgetMicroUsd?: number | undefined;
}

export function observe(state: BuildState, observation: Observation, nowMs: number): BuildState {
  if (hasEnded(state)) return state;
  switch (observation.type) {
    case "stage-done":
      return timed(inStage(state, observation.stage, nextStage), nowMs);
    case "stage-failed":
      return inStage(state, observation.stage, (planning) =>
        stageFailed(planning, observation, isOutdated(state, observation)),
      );
    case "intent-released":
      return timed(inStage(state, "lock", released), nowMs);
    case "planned":
      return firstPlan(state, observation.tasks, nowMs);
    case "attempt-heard":
      return reach(state, observation, "working", nowMs);
    case "attempt-offered":
      return offered(reach(state, observation, "verifying", nowMs), observation, nowMs);
    case "attempt-returned":
      return returned(state, observation, nowMs);
    case "attempt-ended":
      return changeAttempt(state, observation, (attempt) =>
        isNews(attempt, observation.outcome) ? { ...attempt, outcome: observation.outcome } : attempt,
      );
    case "spent":
      return { ...state, spentMicroUsd: Math.max(state.spentMicroUsd, observation.microUsd) };
    case "slots-granted":
      return { ...state, grantedSlots: observation.slots };
    case "satisfaction-checked":
      return inStep(state, "checking", observation.round, (progress) => checked(progress, observation.unsatisfied));
    case "remaining-planned":
      return planned(state, observation.round, observation.tasks);
    case "remaining-refused":
      return inStep(state, "planning", observation.round, (progress) => ({
        ...progress,
        step: isOutdated(state, observation) ? "checked" : "refused",
      }));
    case "remaining-unplannable":
      if (!isPlanningRest(state, observation.round)) return state;
      return { ...state, progress: { ...state.progress, step: "unplannable" } };
  }
}

/**
 * What is merged is merged, whatever became of the sandbox that it came from. What was refused money may have got some
 * meanwhile: all that it ends with later counts.
 */
function isNews({ outcome: known }: AttemptState, outcome: Outcome): boolean {
  return known === null || known.reason === "budget" || isDoneBy(outcome);
}

function inStage(state: BuildState, stage: Stage, change: (planning: Planning) => Planning): BuildState {
  return state.planning?.stage === stage ? { ...state, planning: change(state.planning) } : state;
}

function nextStage(planning: Planning): Planning {
  const isDrafted = planning.stage === "draft";
  const step = isDrafted && waitsAt(planning, "intent") ? "held" : "due";
  return { ...planning, stage: isDrafted ? "lock" : "plan", step, round: 1 };
}

function released(planning: Planning): Planning {
  return planning.step === "held" ? { ...planning, step: "due" } : planning;
}

function stageFailed(
  planning: Planning,
  { round, code }: { readonly round: number; readonly code: string },
  isOutdated: boolean,
): Planning {
  if (planning.step !== "underway" || planning.round !== round) return planning;
  if (code === "budget_exhausted" && isOutdated) return { ...planning, step: "due", round: round + 1 };
  return { ...planning, step: code === "budget_exhausted" ? "refused" : "failed" };
}

/** There is more money than there was when it was refused. */
function isOutdated({ settings }: BuildState, { budgetMicroUsd }: Refusal): boolean {
  return budgetMicroUsd !== undefined && budgetMicroUsd < settings.budgetMicroUsd;
}

function firstPlan(state: BuildState, tasks: Plan["tasks"], nowMs: number): BuildState {
  if (state.planning?.stage !== "plan") return state;
  const wish = waitsAt(state.planning, "plan") && state.wish.kind === "run" ? wishToPause(nowMs) : state.wish;
  return { ...state, wish, planning: null, tasks: tasks.map(beginTask) };
}

function waitsAt({ hold }: Planning, at: "intent" | "plan"): boolean {
  return hold === at || hold === "both";
}

function wishToPause(atMs: number): BuildState["wish"] {
  return { kind: "pause", atMs };
}

const statusOf = { starting: "assigned", working: "building", verifying: "verifying" } as const;

/** Never back from verifying: a sign of life that was under way says nothing new. */
function reach(
  state: BuildState,
  name: { readonly task: string; readonly attempt: number },
  phase: AttemptState["phase"],
  nowMs: number,
): BuildState {
  const heard = changeAttempt(state, name, (attempt) => ({
    ...attempt,
    phase: attempt.phase === "verifying" ? attempt.phase : phase,
    heardAtMs: Math.max(attempt.heardAtMs, nowMs),
  }));
  const attempt = heard.attempts.find(({ task, number }) => task === name.task && number === name.attempt);
  if (attempt === undefined) return state;
  const status = statusOf[attempt.phase];
  return { ...heard, tasks: heard.tasks.map((task) => (task.id === name.task ? { ...task, status } : task)) };
}

function offered(
  state: BuildState,
  { offer, ...name }: { readonly task: string; readonly attempt: number; readonly offer?: number },
  nowMs: number,
): BuildState {
  if (offer === undefined) return state;
  return changeAttempt(state, name, (attempt) => ({ ...attempt, offer: { number: offer, atMs: nowMs } }));
}

/** It goes on; the time that it has waited does not count. */
function returned(
  state: BuildState,
  { answer, ...name }: { readonly task: string; readonly attempt: number; readonly answer: OfferAnswer },
  nowMs: number,
): BuildState {
  const back = changeAttempt(refused(state, name.task, answer), name, (attempt) => ({
    ...attempt,
    phase: "working",
    offer: null,
    answer,
    returns: attempt.returns + 1,
    startedAtMs: attempt.startedAtMs + (nowMs - (attempt.offer?.atMs ?? nowMs)),
  }));
  return reach(back, name, "working", nowMs);
}

function refused(state: BuildState, id: string, { findings }: OfferAnswer): BuildState {
  const { gate, text } = findings[0] ?? { gate: "offer", text: "" };
  const finding = briefly(text);
  const tasks = state.tasks.map((task) =>
    task.id === id ? { ...task, refusal: { gate, finding, times: (task.refusal?.times ?? 0) + 1 } } : task,
  );
  return { ...state, tasks };
}

function checked(progress: Progress, found: readonly string[]): Progress {
  const unsatisfied = found.toSorted(compareIds);
  const isUnchanged = unsatisfied.join() === progress.unsatisfied.join();
  return { ...progress, step: "checked", unsatisfied, unchangedRounds: isUnchanged ? progress.unchangedRounds + 1 : 0 };
}

function planned(state: BuildState, round: number, tasks: Plan["tasks"]): BuildState {
  if (!isPlanningRest(state, round)) return state;
  const progress: Progress = { ...state.progress, step: "tasks", round: round + 1 };
  return { ...state, progress, tasks: [...state.tasks, ...tasks.map(beginTask)] };
}

/** Also while the build waits for money: whoever was refused may have been asked again before that was known. */
function isPlanningRest(state: BuildState, round: number): boolean {
  return (["planning", "refused", "checked"] as const).some((step) => isInStep(state, step, round));
}

function inStep(
  state: BuildState,
  step: Progress["step"],
  round: number,
  change: (progress: Progress) => Progress,
): BuildState {
  return isInStep(state, step, round) ? { ...state, progress: change(state.progress) } : state;
}

function isInStep({ progress }: BuildState, step: Progress["step"], round: number): boolean {
  return progress.step === step && progress.round === round;
}
