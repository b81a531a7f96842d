import { compareIds } from "@slipway/contract";
import type { MergeWork } from "../ports/work.ts";
import type { ActionOf, MergeAction } from "./actions.ts";
import { lineUp, testMerges } from "./admit.ts";
import { applyMergeActions } from "./apply.ts";
import { disputesUnderway, settleDisputes } from "./disputes.ts";
import { type View, viewOf } from "./line.ts";
import { cancelUseless, endOverdue, mergeFirst, startRuns } from "./runs.ts";
import { discardAll, settle } from "./settle.ts";
import { type MergeQueue, nameOf } from "./state.ts";

type Step = (view: View, nowMs: number) => MergeAction[];

const steps: Readonly<Record<MergeQueue["wish"], readonly Step[]>> = {
  run: [endOverdue, settle, settleDisputes, lineUp, testMerges, mergeFirst, cancelUseless, startRuns],
  // Runs continue to their end, and their results are kept.
  pause: [endOverdue],
  cancel: [discardAll],
};

/**
 * What a merge queue does next. A candidate passes the gates that look at it alone, cheapest first; then it joins the
 * line, where it is tested on top of main and those ahead of it, and is merged when main is what it was tested on. A
 * failure counts only when it repeats on the same files, and only on top of main itself is it the candidate's fault.
 *
 * The same queue gives the same actions, in whatever order its parts are listed; and once they are applied there is
 * nothing more to do until something happens or time passes.
 */
export function decide(queue: MergeQueue, nowMs: number): readonly MergeAction[] {
  let current = inOrder(queue);
  const decided: MergeAction[] = [];
  // Each step that finds something to do changes what the ones before it see.
  for (;;) {
    const actions = firstActions(current, nowMs);
    if (actions.length === 0) return decided;
    current = applyMergeActions(current, actions, nowMs);
    decided.push(...actions);
  }
}

function firstActions(queue: MergeQueue, nowMs: number): readonly MergeAction[] {
  const view = viewOf(queue);
  for (const step of steps[queue.wish]) {
    const actions = step(view, nowMs);
    if (actions.length > 0) return actions;
  }
  return [];
}

/** After a restart: what should be under way. */
export function underway(queue: MergeQueue): readonly ActionOf<MergeWork["type"]>[] {
  const { runs, testMerges, merging, candidates } = queue;
  const asked = testMerges.filter(({ outcome }) => outcome === null);
  const taskOf = (id: string) => candidates.find((candidate) => candidate.id === id)?.task ?? "";
  return [
    ...(merging ? [{ type: "merge", ...merging } as const] : []),
    ...asked.flatMap(({ base, commit }) => {
      const owner = candidates.find((candidate) => candidate.commit === commit);
      return owner ? [{ type: "test-merge", ...nameOf(owner), base, commit } as const] : [];
    }),
    ...disputesUnderway(queue),
    ...runs.map(({ startedAtMs: _, ...run }) => ({ type: "gate-run", ...run, task: taskOf(run.candidate) }) as const),
  ];
}

function inOrder(queue: MergeQueue): MergeQueue {
  return {
    ...queue,
    candidates: queue.candidates.toSorted((a, b) => compareIds(a.id, b.id)),
    runs: queue.runs.toSorted((a, b) => a.run - b.run),
  };
}
