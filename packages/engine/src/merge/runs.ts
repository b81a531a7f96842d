import type { ActionOf, MergeAction } from "./actions.ts";
import type { View } from "./line.ts";
import { gatesOn, keyOf } from "./results.ts";
import {
  aloneOf,
  byUrgency,
  type Candidate,
  type GateRun,
  type Judged,
  type MergeQueue,
  nameOf,
  onMainOf,
  outcomeOf,
} from "./state.ts";

/** A run that takes too long counts as broken. */
export function endOverdue({ queue }: View, nowMs: number): MergeAction[] {
  return queue.runs
    .filter((run) => deadlineOf(queue, run) <= nowMs)
    .map(({ run }) => ({ type: "cancel-run", run, overdue: true }));
}

export function cancelUseless(view: View): MergeAction[] {
  const useful = new Set(usefulRuns(view).map(subjectOf));
  return view.queue.runs
    .filter((run) => !useful.has(subjectOf(run)))
    .map(({ run }) => ({ type: "cancel-run", run, overdue: false }));
}

/** Fills the free slots. */
export function startRuns(view: View, nowMs: number): MergeAction[] {
  const { queue, results } = view;
  const underway = new Set(queue.runs.map(subjectOf));
  const due = usefulRuns(view).filter((run) => {
    const waits = (results.of(run.gate, run)?.notBeforeMs ?? 0) > nowMs;
    if (waits || run.isBeyond || underway.has(subjectOf(run))) return false;
    underway.add(subjectOf(run));
    return true;
  });
  return due
    .slice(0, Math.max(0, queue.slots - queue.runs.length))
    .map(({ isBeyond: _, ...run }, index) => ({ type: "gate-run", run: queue.started + index + 1, ...run }));
}

interface UsefulRun extends Omit<ActionOf<"gate-run">, "type" | "run"> {
  /** Outside of the window, or of a candidate about which too little is known: it may continue, but does not begin. */
  readonly isBeyond: boolean;
}

/**
 * Runs that would help a candidate, nearest to a merge first: the line, then failures to repeat, then candidates
 * alone.
 */
function usefulRuns(view: View): readonly UsefulRun[] {
  const { queue, results, plan } = view;
  const [alone, onMain] = [gatesOn(queue, "candidate"), gatesOn(queue, "main")];
  const going = plan.filter(({ stuck }) => !stuck);
  const line = going.flatMap(({ candidate, base, merged }, index) => {
    if (merged === null) return [];
    const { commit, tree, tasks } = merged;
    const ahead = going.slice(0, index).map((one) => one.candidate.task);
    const on = { ...nameOf(candidate), base, commit, tree, tasks, ahead, isBeyond: index >= queue.window };
    return results.next(onMain, merged).map(({ name }) => ({ gate: name, ...on }));
  });
  const byUrge = queue.candidates.toSorted(byUrgency);
  const again = byUrge.flatMap(({ suspicion, ...candidate }) =>
    suspicion ? [{ ...nameOf(candidate), ...suspicion, ahead: [], isBeyond: false }] : [],
  );
  // A candidate that conflicts with main, or is known to fail on it, goes back without these runs.
  const asksMain = gatesOn(queue, "others").length > 0;
  const single = byUrge.flatMap((candidate) => {
    const merged = onMainOf(queue, candidate);
    // It adds nothing that could be tested alone.
    if (merged?.tree === queue.main.tree) return onMainItself(view, candidate, merged);
    const on = { ...nameOf(candidate), base: null, commit: candidate.commit, ...aloneOf(candidate), ahead: [] };
    const isBeyond = asksMain && outcomeOf(queue, queue.main.commit, candidate.commit) === null;
    return results.next(alone, on).map(({ name }) => ({ gate: name, ...on, isBeyond }));
  });
  return [...line, ...again, ...single].filter((run) => !isKnown(results.standing(run.gate, run)));
}

/** A failure is not looked at again, also while its candidate is held by a dispute. */
function isKnown(standing: ReturnType<View["results"]["standing"]>): boolean {
  return standing === "failed" || standing === "broken";
}

function onMainItself({ queue, results }: View, candidate: Candidate, { tree, tasks }: Judged): readonly UsefulRun[] {
  const { commit } = queue.main;
  const on = { ...nameOf(candidate), base: commit, commit, tree, tasks, ahead: [], isBeyond: false };
  return results.next(gatesOn(queue, "main"), on).map(({ name }) => ({ gate: name, ...on }));
}

function subjectOf(run: Pick<GateRun, "gate" | "tree" | "tasks">): string {
  return keyOf(run.gate, run);
}

function deadlineOf({ gates }: MergeQueue, { gate, startedAtMs }: GateRun): number {
  return startedAtMs + (gates.find(({ name }) => name === gate)?.limitMs ?? 0);
}

/** When a turn next has something to decide although nothing was reported. Null: never. */
export function nextWakeMs(queue: MergeQueue, nowMs: number): number | null {
  const deadlines = queue.runs.map((run) => deadlineOf(queue, run));
  const waits = queue.results.map(({ notBeforeMs }) => notBeforeMs);
  const next = Math.min(...[...deadlines, ...waits].filter((atMs) => atMs > nowMs));
  return Number.isFinite(next) ? next : null;
}

/** The first of the line, once everything about it is known and good. */
export function mergeFirst({ queue, results, plan }: View): MergeAction[] {
  if (queue.merging !== null) return [];
  // Those before it are stuck and left out: it stands on main.
  const ready = plan.find(({ stuck }) => !stuck);
  if (ready === undefined || ready.merged === null) return [];
  const { candidate, base: from, merged } = ready;
  const left = [
    ...results.next(gatesOn(queue, "candidate"), aloneOf(candidate)),
    ...results.next(gatesOn(queue, "main"), merged),
  ];
  if (left.length > 0) return [];
  return [{ type: "merge", ...nameOf(candidate), from, to: merged.commit, tree: merged.tree }];
}
