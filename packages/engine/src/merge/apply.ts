import type { ActionOf, MergeAction } from "./actions.ts";
import { isSameCheck } from "./disputes.ts";
import { forget } from "./forget.ts";
import { withEnd } from "./results.ts";
import { type Candidate, type Dispute, type MergeQueue, minWindow } from "./state.ts";

/** The queue once the actions are taken. */
export function applyMergeActions(queue: MergeQueue, actions: readonly MergeAction[], nowMs: number): MergeQueue {
  return actions.reduce((current, action) => applyAction(current, action, nowMs), queue);
}

function applyAction(queue: MergeQueue, action: MergeAction, nowMs: number): MergeQueue {
  switch (action.type) {
    case "test-merge": {
      const asked = { base: action.base, commit: action.commit, outcome: null };
      return { ...queue, testMerges: [...queue.testMerges, asked] };
    }
    case "gate-run": {
      const { type: _, task: __, ...run } = action;
      return { ...queue, started: run.run, runs: [...queue.runs, { ...run, startedAtMs: nowMs }] };
    }
    case "cancel-run":
      return runCancelled(queue, action, nowMs);
    case "line-up":
      return changeCandidate(queue, action.candidate, { place: action.place });
    case "leave-line":
      return changeCandidate(queue, action.candidate, { place: null });
    case "set-aside": {
      const { type: _, candidate, task: __, ...suspicion } = action;
      const window = Math.max(minWindow, Math.floor(queue.window / 2));
      return { ...changeCandidate(queue, candidate, { place: null, suspicion }), window };
    }
    case "clear":
      return changeCandidate(queue, action.candidate, { suspicion: null });
    case "merge": {
      const { type: _, ...merging } = action;
      return { ...queue, merging };
    }
    case "satisfy":
      return { ...withoutCandidate(queue, action.candidate), merged: [...queue.merged, action.task] };
    case "reject":
      return rejected(queue, action);
    case "open-dispute":
      return disputeOpened(queue, action, nowMs);
    case "settle-dispute":
      return changeDispute(queue, action.dispute, { status: "underway" });
    case "return-conflict":
    case "discard":
      return withoutCandidate(queue, action.candidate);
  }
}

function runCancelled(queue: MergeQueue, { run, overdue }: ActionOf<"cancel-run">, nowMs: number): MergeQueue {
  const cancelled = queue.runs.find((one) => one.run === run);
  if (cancelled === undefined) return queue;
  const results = overdue
    ? withEnd(queue.results, cancelled, { verdict: "error", findings: [] }, nowMs)
    : queue.results;
  return { ...queue, results, runs: queue.runs.filter((one) => one !== cancelled) };
}

/** More would be of candidates that nobody remembers. */
const maxRefusals = 200;

function rejected(queue: MergeQueue, action: ActionOf<"reject">): MergeQueue {
  const { candidate, task, failedAt: at, broken, unchanged } = action;
  const left = withoutCandidate(broken ? forgetBroken(queue, action) : queue, candidate);
  const tree = queue.candidates.find(({ id }) => id === candidate)?.tree;
  const isOfDispute = queue.disputes.some(({ candidates }) => candidates.includes(candidate));
  if (at === null || broken || unchanged || tree === undefined || isOfDispute) return left;
  return { ...left, refusals: [...left.refusals, { task, candidate, tree, at }].slice(-maxRefusals) };
}

function disputeOpened(queue: MergeQueue, action: ActionOf<"open-dispute">, nowMs: number): MergeQueue {
  const { task, dispute: number, at, candidates, asks: by } = action;
  const status = by === "judge" ? "due" : "user";
  const opened = { number, round: 1, task, at, candidates: [...candidates], status, by } as const;
  const disputes = [...queue.disputes, { ...opened, because: null, advice: null, openedAtMs: nowMs }];
  return { ...queue, disputes, refusals: queue.refusals.filter((one) => !isSameCheck(one.at, at)) };
}

export function changeDispute(queue: MergeQueue, number: number, change: Partial<Dispute>): MergeQueue {
  const disputes = queue.disputes.map((one) => (one.number === number ? { ...one, ...change } : one));
  return { ...queue, disputes };
}

/** Nothing was found out about these files: when they are offered again, the gate runs again. */
function forgetBroken(queue: MergeQueue, { gate, tree }: ActionOf<"reject">): MergeQueue {
  return { ...queue, results: queue.results.filter((result) => result.gate !== gate || result.tree !== tree) };
}

function changeCandidate(queue: MergeQueue, id: string, change: Partial<Candidate>): MergeQueue {
  const candidates = queue.candidates.map((candidate) =>
    candidate.id === id ? { ...candidate, ...change } : candidate,
  );
  return { ...queue, candidates };
}

/** Its runs, if any, are no longer of use: see runs.ts. */
export function withoutCandidate(queue: MergeQueue, id: string): MergeQueue {
  const candidates = queue.candidates.filter((candidate) => candidate.id !== id);
  return forget({ ...queue, candidates, ended: [...queue.ended, id] });
}
