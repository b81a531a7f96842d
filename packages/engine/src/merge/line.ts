import { gatesOn, type Results, resultsOf } from "./results.ts";
import {
  type Candidate,
  type CleanMerge,
  digestOf,
  inLine,
  type Judged,
  type MergeOutcome,
  type MergeQueue,
  outcomeOf,
} from "./state.ts";

/** A queue, with what most of its decisions look up. */
export interface View {
  readonly queue: MergeQueue;
  readonly results: Results;
  readonly plan: readonly Planned[];
}

export function viewOf(queue: MergeQueue): View {
  const results = resultsOf(queue);
  return { queue, results, plan: planLine(queue, results) };
}

/** A candidate of the line, with what it is tested on top of. */
export interface Planned {
  readonly candidate: Candidate;
  readonly base: string;
  /** Null: not known yet. */
  readonly merge: MergeOutcome | null;
  /** What gates judge once it is merged. Null: not known to merge cleanly. */
  readonly merged: (Judged & CleanMerge) | null;
  /** It waits for what becomes of those ahead, and those behind go on without it. */
  readonly stuck: boolean;
}

/**
 * Each candidate of the line on top of main and those ahead of it. One that conflicts with them, or fails on top of
 * them, is left out for those behind: another may be at fault, which is settled once only main is below it.
 */
function planLine(queue: MergeQueue, results: Results): readonly Planned[] {
  const gates = gatesOn(queue, "main");
  const tasks = new Set(queue.merged);
  const plan: Planned[] = [];
  let base: string | null = queue.main.commit;
  for (const candidate of inLine(queue)) {
    // Nothing is known behind a merge that is not known yet.
    if (base === null) break;
    if (!candidate.dependencies.every((task) => tasks.has(task))) continue;
    const merge: MergeOutcome | null = outcomeOf(queue, base, candidate.commit);
    const clean: CleanMerge | null = merge?.type === "clean" ? merge : null;
    const merged = clean && { ...clean, tasks: digestOf([...tasks, candidate.task]) };
    const stuck = merge !== null && (merged === null || results.failed(gates, merged, "doubted") !== undefined);
    plan.push({ candidate, base, merge, merged, stuck });
    if (stuck) continue;
    tasks.add(candidate.task);
    base = clean?.commit ?? null;
  }
  return plan;
}
