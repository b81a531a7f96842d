import { afterEnd, type End, endAs, endText, type Finding } from "@slipway/contract";
import type { SettledOffer } from "../../ports/merging.ts";
import type { ReportOf } from "../../ports/reports.ts";
import { changeAttempt } from "../apply.ts";
import { briefly, fingerprint, patternScope } from "../fingerprint.ts";
import { type AttemptState, attemptName, type BuildState, isDoneBy, type Outcome } from "../state.ts";
import type { Fact, Known, Life, Observed } from "./facts.ts";

/**
 * What attempts report, and what the merge queue answers them. A report about another life than the current one is
 * late.
 */
export function observeAttempt(
  state: BuildState,
  fact: ReportOf<"attempt.heard" | "attempt.offered" | "attempt.ended" | "candidate.offered" | "candidate.refused">,
  known: Known,
  nowMs: number,
): Observed {
  const attempt = findAttempt(state, fact.data);
  if (attempt === undefined) return { state };
  switch (fact.type) {
    case "attempt.heard": {
      const { sandbox = null, run = null } = fact.data;
      const place = [attemptName(attempt.task, attempt.number), { sandbox, run }] as const;
      return { state: reach(state, fact.data, "working", nowMs), place };
    }
    case "attempt.offered":
      return { state: reach(state, fact.data, "verifying", nowMs) };
    case "candidate.offered": {
      const offer = { number: fact.data.offer, atMs: nowMs };
      const reached = reach(state, fact.data, "verifying", nowMs);
      return { state: changeAttempt(reached, fact.data, (one) => ({ ...one, offer })) };
    }
    case "candidate.refused":
      return returned(state, attempt, { ...fact.data, main: null, unchanged: false }, known, nowMs);
    case "attempt.ended": {
      const { end, budgetMicroUsd, fix } = fact.data;
      return ended(state, attempt, { ...end, budgetMicroUsd }, known, { fix, nowMs });
    }
  }
}

/** What became of an attempt's offer. */
export function settle(state: BuildState, offer: SettledOffer, known: Known, nowMs: number): Observed {
  const owner = findAttempt(state, offer);
  if (owner === undefined) return { state };
  switch (offer.type) {
    case "merged":
      return ended(state, owner, endAs("merged"), known, { fix: offer.fix, nowMs });
    case "satisfied":
      return ended(state, owner, { ...endAs("satisfied"), main: offer.main }, known, { nowMs });
    case "returned":
      return returned(state, owner, offer, known, nowMs);
  }
}

/** How an attempt ends by this fact, or would if its offer has come back too often. */
export function endOf(fact: Fact): End | undefined {
  switch (fact.type) {
    case "attempt.ended":
      return fact.data.end;
    case "candidate.refused":
      return returnedTooOften(fact.data.findings);
    case "offer.settled":
      return fact.data.type === "returned" ? returnedTooOften(fact.data.findings) : undefined;
    default:
      return undefined;
  }
}

/** Undefined: it has ended, or another life of it is current, and what followed from the end of this one is decided. */
function findAttempt({ attempts }: BuildState, { task, attempt, respawn }: Life): AttemptState | undefined {
  return attempts.find(
    (one) => one.task === task && one.number === attempt && (respawn === undefined || one.respawns === respawn),
  );
}

/** `fix`: what mended the error that the task had before. */
function ended(
  state: BuildState,
  { task, number }: AttemptState,
  outcome: Outcome,
  { build, attempts, patterns }: Known,
  { fix, nowMs }: { readonly fix?: string | undefined; readonly nowMs: number },
): Observed {
  const error = afterEnd(outcome) === "retry" ? fingerprint(endText(outcome)) : "";
  const told = { ...outcome, pattern: patterns.has(error) ? error : undefined };
  const next = changeAttempt(state, { task, attempt: number }, (one) =>
    isNews(one, told) ? { ...one, outcome: told } : one,
  );
  const mended = state.tasks.find(({ id }) => id === task)?.failures.at(-1)?.error;
  const id = attempts.get(attemptName(task, number));
  if (outcome.reason !== "merged" || mended === undefined || id === undefined || fix === undefined)
    return { state: next };
  const learnt = { project: patternScope(build), signature: mended, error: mended, fix, attempt: id, learntAt: nowMs };
  return { state: next, learnt };
}

/**
 * What is merged is merged, whatever became of the sandbox that it came from. An attempt that was refused money may
 * have got some meanwhile: a later end of it counts.
 */
function isNews({ outcome: known }: AttemptState, outcome: Outcome): boolean {
  return known === null || known.reason === "budget" || isDoneBy(outcome);
}

/** How often an attempt may rework what it offered before another way is tried. */
const maxReturns = 6;

/** The attempt continues; the time that its offer has waited does not count. */
function returned(
  state: BuildState,
  owner: AttemptState,
  { offer, findings, main, unchanged }: Omit<Extract<SettledOffer, { type: "returned" }>, "type" | "task" | "attempt">,
  known: Known,
  nowMs: number,
): Observed {
  const name = { task: owner.task, attempt: owner.number };
  const back = changeAttempt(withRefusal(state, owner.task, findings), name, (attempt) => ({
    ...attempt,
    phase: "working",
    offer: null,
    answer: { offer, findings, main, unchanged },
    returns: attempt.returns + 1,
    startedAtMs: attempt.startedAtMs + (nowMs - (attempt.offer?.atMs ?? nowMs)),
  }));
  const reached = reach(back, name, "working", nowMs);
  // An attempt that changes nothing although it was told that nothing has changed would continue like that.
  const continues = owner.returns + 1 < maxReturns && !(unchanged && owner.answer?.unchanged);
  return continues ? { state: reached } : ended(reached, owner, returnedTooOften(findings), known, { nowMs });
}

function returnedTooOften(findings: readonly Finding[]): End {
  return endAs("returned_too_often", findings.map(({ gate, text }) => `${gate}: ${text}`).join("\n"));
}

function withRefusal(state: BuildState, id: string, findings: readonly Finding[]): BuildState {
  const { gate, text } = findings[0] ?? { gate: "offer", text: "" };
  const finding = briefly(text);
  const tasks = state.tasks.map((task) =>
    task.id === id ? { ...task, refusal: { gate, finding, times: (task.refusal?.times ?? 0) + 1 } } : task,
  );
  return { ...state, tasks };
}

const statusOf = { starting: "assigned", working: "building", verifying: "verifying" } as const;

/** Never back from verifying: a sign of life that was under way says nothing new. */
function reach(state: BuildState, name: Life, phase: AttemptState["phase"], nowMs: number): BuildState {
  const heard = changeAttempt(state, name, (attempt) => ({
    ...attempt,
    phase: attempt.phase === "verifying" ? attempt.phase : phase,
    heardAtMs: Math.max(attempt.heardAtMs, nowMs),
  }));
  const attempt = findAttempt(heard, { task: name.task, attempt: name.attempt });
  if (attempt === undefined) return state;
  const status = statusOf[attempt.phase];
  return { ...heard, tasks: heard.tasks.map((task) => (task.id === name.task ? { ...task, status } : task)) };
}
