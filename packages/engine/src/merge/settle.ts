import type { Finding } from "@slipway/contract";
import type { MergeAction } from "./actions.ts";
import { adviceOn, dispute } from "./disputes.ts";
import type { Planned, View } from "./line.ts";
import { gatesOn, type Results } from "./results.ts";
import { aloneOf, type Candidate, inLine, type Judged, type MergeQueue, nameOf, onMainOf, outcomeOf } from "./state.ts";

/** The user's cancel ends everything except a merge that may have happened already. */
export function discardAll({ queue: { candidates, merging, runs } }: View): MergeAction[] {
  return [
    ...runs.map(({ run }) => ({ type: "cancel-run", run, overdue: false }) as const),
    ...candidates
      .filter(({ id }) => id !== merging?.candidate)
      .map((candidate) => ({ type: "discard", ...nameOf(candidate) }) as const),
  ];
}

/** One decision at a time about a candidate: one that goes changes what the others stand on. */
export function settle({ queue, results, plan }: View): MergeAction[] {
  const settled =
    first(open(queue), (candidate) => returnConflict(queue, candidate)) ??
    first(open(queue), (candidate) => rejectAlone(queue, results, candidate)) ??
    first(open(queue), (candidate) => rejectOnMain(queue, results, candidate)) ??
    first(open(queue), (candidate) => satisfy(queue, results, candidate)) ??
    first(open(queue), (candidate) => settleSuspicion(queue, results, candidate)) ??
    first(plan, (planned) => doubtOnMain(queue, results, planned)) ??
    leaveLine(queue);
  return settled ? [settled] : [];
}

/** A merge that is asked for is not withdrawn. */
function open({ candidates, merging }: MergeQueue): readonly Candidate[] {
  return candidates.filter(({ id }) => id !== merging?.candidate);
}

function returnConflict(queue: MergeQueue, candidate: Candidate): MergeAction | undefined {
  const { commit } = candidate;
  const main = queue.main.commit;
  const outcome = outcomeOf(queue, main, commit);
  if (outcome?.type !== "conflict") return undefined;
  return { type: "return-conflict", ...nameOf(candidate), main, commit, paths: outcome.paths };
}

function rejectAlone(queue: MergeQueue, results: Results, candidate: Candidate): MergeAction | undefined {
  const on = aloneOf(candidate);
  const gate = results.failed(gatesOn(queue, "candidate"), on);
  return gate && reject(queue, results, candidate, gate.name, on);
}

/** On top of main itself a failure is the candidate's own, whether found now or when the same was offered before. */
function rejectOnMain(queue: MergeQueue, results: Results, candidate: Candidate): MergeAction | undefined {
  const on = onMainOf(queue, candidate);
  const gate = on && results.failed(gatesOn(queue, "main"), on);
  return gate ? reject(queue, results, candidate, gate.name, on) : undefined;
}

/** The candidate adds nothing to main: then its task is done when main passes for it. */
function satisfy(queue: MergeQueue, results: Results, candidate: Candidate): MergeAction | undefined {
  const { main, merging } = queue;
  const on = onMainOf(queue, candidate);
  if (on?.tree !== main.tree || merging !== null) return undefined;
  if (results.next(gatesOn(queue, "main"), on).length > 0) return undefined;
  return { type: "satisfy", ...nameOf(candidate), main: main.commit };
}

function settleSuspicion(queue: MergeQueue, results: Results, candidate: Candidate): MergeAction | undefined {
  const { suspicion } = candidate;
  if (suspicion === null) return undefined;
  const standing = results.standing(suspicion.gate, suspicion);
  if (standing === "passed") return { type: "clear", ...nameOf(candidate) };
  return standing === "doubted" ? undefined : reject(queue, results, candidate, suspicion.gate, suspicion);
}

function doubtOnMain(
  queue: MergeQueue,
  results: Results,
  { candidate, base, merged }: Planned,
): MergeAction | undefined {
  if (base !== queue.main.commit || merged === null) return undefined;
  const gate = results.failed(gatesOn(queue, "main"), merged, "doubted")?.name;
  if (gate === undefined) return undefined;
  const { commit, tree, tasks } = merged;
  return { type: "set-aside", ...nameOf(candidate), gate, commit, tree, tasks, base };
}

/** Undefined: it is held until the check that it fails is known to be right. */
function reject(
  queue: MergeQueue,
  results: Results,
  candidate: Candidate,
  gate: string,
  on: Judged,
): MergeAction | undefined {
  const { offeredAtMs } = candidate;
  const { findings = [], failedAtMs = offeredAtMs, failedAt = null } = results.of(gate, on) ?? {};
  const broken = results.standing(gate, on) === "broken";
  const unchanged = !broken && failedAtMs < offeredAtMs;
  const disputed = failedAt === null || broken || unchanged ? undefined : dispute(queue, candidate, failedAt);
  if (disputed !== undefined) return disputed === "held" ? undefined : disputed;
  const advice = failedAt && adviceOn(queue, failedAt);
  const told = advice === null ? findings : [...findings, advised(gate, advice)];
  return { type: "reject", ...nameOf(candidate), gate, failedAt, tree: on.tree, broken, unchanged, findings: told };
}

function advised(gate: string, advice: string): Finding {
  return { gate, text: `The check was looked at again, and it is right. ${advice}` };
}

function leaveLine(queue: MergeQueue): MergeAction | undefined {
  const ahead = new Set(queue.merged);
  for (const candidate of inLine(queue)) {
    const isLeft = !candidate.dependencies.every((dependency) => ahead.has(dependency));
    if (isLeft) return { type: "leave-line", ...nameOf(candidate) };
    ahead.add(candidate.task);
  }
  return undefined;
}

function first<T>(all: readonly T[], find: (one: T) => MergeAction | undefined): MergeAction | undefined {
  for (const one of all) {
    const found = find(one);
    if (found) return found;
  }
  return undefined;
}
