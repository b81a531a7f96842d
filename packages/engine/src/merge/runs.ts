import type { Gate } from "@slipway/contract";
import type { MergeAction } from "./actions.ts";
import type { View } from "./line.ts";
import { gatesOn, keyOf } from "./results.ts";
import {
  aloneOf,
  byUrgency,
  type Candidate,
  type GateRun,
  type Judged,
  type MergeQueue,
  onMainOf,
  outcomeOf,
} from "./state.ts";

/** A run that takes too long has broken. */
export function endOverdue({ queue }: View, nowMs: number): MergeAction[] {
  return queue.runs
    .filter((run) => deadlineOf(queue, run) <= nowMs)
    .map(({ run }) => ({ type: "cancel-run", run, overdue: true }));
}

export function cancelUseless(view: View): MergeAction[] {
  const useful = new Set(usefulRuns(view).map(nameOf));
  return view.queue.runs
    .filter((run) => !useful.has(nameOf(run)))
    .map(({ run }) => ({ type: "cancel-run", run, overdue: false }));
}

/** Fills the free slots. */
export function startRuns(view: View, nowMs: number): MergeAction[] {
  const { queue, results } = view;
  const underway = new Set(queue.runs.map(nameOf));
  const due = usefulRuns(view).filter((run) => {
    const waits = (results.of(run.gate, run)?.notBeforeMs ?? 0) > nowMs;
    if (waits || run.isBeyond || underway.has(nameOf(run))) return false;
    underway.add(nameOf(run));
    return true;
  });
  return due
    .slice(0, Math.max(0, queue.slots - queue.runs.length))
    .map(({ isBeyond: _, ...run }, index) => ({ type: "start-run", run: queue.started + index + 1, ...run }));
}

interface UsefulRun extends Omit<GateRun, "run" | "startedAtMs"> {
  /** Outside of the window, or of a candidate of which too little is known: it may go on, but is not begun. */
  readonly isBeyond: boolean;
}

/**
 * What would bring a candidate on, what is nearest to a merge first: the line, then failures that are to be seen again,
 * then candidates by themselves.
 */
function usefulRuns(view: View): readonly UsefulRun[] {
  const { queue, results, plan } = view;
  const [alone, onMain] = [gatesOn(queue, "candidate"), gatesOn(queue, "main")];
  const going = plan.filter(({ stuck }) => !stuck);
  const line = going.flatMap(({ candidate: { id }, base, merged }, index) => {
    if (merged === null) return [];
    const { commit, tree, tasks } = merged;
    const ahead = going.slice(0, index).map(({ candidate }) => candidate.task);
    const on = { candidate: id, base, commit, tree, tasks, ahead, isBeyond: index >= queue.window };
    return results.next(onMain, merged).map(({ name }) => ({ gate: name, ...on }));
  });
  const byUrge = queue.candidates.toSorted(byUrgency);
  const again = byUrge.flatMap(({ id, suspicion }) =>
    suspicion ? [{ candidate: id, ...suspicion, ahead: [], isBeyond: false }] : [],
  );
  // What conflicts with main, or is known to fail on it, goes back without them.
  const asksMain = gatesOn(queue, "others").length > 0;
  const single = byUrge.flatMap((candidate) => {
    const merged = onMainOf(queue, candidate);
    // There is nothing in it that could be looked at alone.
    if (merged?.tree === queue.main.tree) return onMainItself(view, candidate, merged);
    const on = { candidate: candidate.id, base: null, commit: candidate.commit, ...aloneOf(candidate), ahead: [] };
    const isBeyond = asksMain && outcomeOf(queue, queue.main.commit, candidate.commit) === null;
    return results.next(alone, on).map(({ name }) => ({ gate: name, ...on, isBeyond }));
  });
  return [...line, ...again, ...single];
}

function onMainItself({ queue, results }: View, { id }: Candidate, { tree, tasks }: Judged): readonly UsefulRun[] {
  const { commit } = queue.main;
  const on = { candidate: id, base: commit, commit, tree, tasks, ahead: [], isBeyond: false };
  return results.next(gatesOn(queue, "main"), on).map(({ name }) => ({ gate: name, ...on }));
}

function nameOf(run: Pick<GateRun, "gate" | "tree" | "tasks">): string {
  return keyOf(run.gate, run);
}

function deadlineOf({ gates }: MergeQueue, { gate, startedAtMs }: GateRun): number {
  const known: Gate | undefined = gates.find(({ name }) => name === gate);
  return startedAtMs + (known?.limitMs ?? 0);
}

/** The next moment at which a turn can decide something though nothing has come in. Null: there is none. */
export function nextWakeMs(queue: MergeQueue, nowMs: number): number | null {
  const deadlines = queue.runs.map((run) => deadlineOf(queue, run));
  const waits = queue.results.map(({ notBeforeMs }) => notBeforeMs);
  const next = Math.min(...[...deadlines, ...waits].filter((atMs) => atMs > nowMs));
  return Number.isFinite(next) ? next : null;
}

/** The first of the line, once everything about it is known and good. */
export function mergeFirst({ queue, results, plan }: View): MergeAction[] {
  if (queue.merging !== null) return [];
  // Those before it are left out: it stands on main.
  const ready = plan.find(({ stuck }) => !stuck);
  if (ready === undefined || ready.merged === null) return [];
  const { candidate, base: from, merged } = ready;
  const left = [
    ...results.next(gatesOn(queue, "candidate"), aloneOf(candidate)),
    ...results.next(gatesOn(queue, "main"), merged),
  ];
  if (left.length > 0) return [];
  return [{ type: "merge", candidate: candidate.id, task: candidate.task, from, to: merged.commit, tree: merged.tree }];
}
