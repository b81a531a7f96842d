import {
  type AttemptId,
  type CandidateId,
  type Finding,
  type Gate,
  type GateVerdict,
  gateResultSchema,
  usualGates,
} from "@slipway/contract";
import type { ReportOf } from "../ports/reports.ts";
import type { MergeAction } from "./actions.ts";
import { applyMergeActions } from "./apply.ts";
import { decide } from "./decide.ts";
import { forgetMain } from "./forget.ts";
import { observeMerges, type QueueFact } from "./observe.ts";
import { type Main, type MergeQueue, type Offer, openQueue } from "./state.ts";

/** Main is `m`, and has merged what its name says: `m+a+b`. A tree is named after what it holds, in whatever order. */
const main = { commit: "m", tree: "tree:m" };

export function begin({ slots = 4, gates = usualGates }: { slots?: number; gates?: readonly Gate[] } = {}): MergeQueue {
  return openQueue({ gates, slots, main });
}

export function offered(id: string, more: Partial<Offer> = {}): QueueFact {
  const ids = { id: id as CandidateId, attempt: `att-${id}` as AttemptId };
  const offer = { ...ids, task: id, dependencies: [], commit: id, tree: `tree:${id}`, tailMs: 0 };
  return { type: "offer.made", data: { ...offer, ...more } };
}

export function withdrawn(id: string): QueueFact {
  return { type: "offer.withdrawn", data: { candidate: id as CandidateId } };
}

export function wished(wish: MergeQueue["wish"]): QueueFact {
  return { type: "build.set", data: { wish } };
}

export function mergeEnded(candidate: string, merged: boolean, at: Main): QueueFact {
  return { type: "merge.ended", data: { candidate: candidate as CandidateId, merged, main: at } };
}

/** What a merge makes of main, for those that are tested on it. */
export function movedTo(queue: MergeQueue, commit: string): MergeQueue {
  return forgetMain({ ...queue, main: { commit, tree: `tree:${commit}` } });
}

export type Tested = ReportOf<"merge.tested">["data"]["outcome"];

/** What git makes of merging a candidate into a base, when nothing conflicts. */
export function clean(base: string, commit: string): Tested {
  const parts = [...new Set([...base.split("+"), commit])].sort();
  return { type: "clean", commit: `${base}+${commit}`, tree: `tree:${parts.join("+")}` };
}

function observeAll(queue: MergeQueue, nowMs: number, facts: readonly QueueFact[]): MergeQueue {
  return facts.reduce((current, fact) => observeMerges(current, fact, nowMs), queue);
}

/** One turn after some reports. */
export function after(queue: MergeQueue, nowMs: number, ...facts: readonly QueueFact[]): MergeQueue {
  const observed = observeAll(queue, nowMs, facts);
  return applyMergeActions(observed, decide(observed, nowMs), nowMs);
}

/**
 * What is done, and the queue after it. Test merges are answered at once, with conflicts between those that are
 * named.
 */
export interface Play {
  readonly queue: MergeQueue;
  readonly actions: readonly MergeAction[];
}

export function play(
  queue: MergeQueue,
  nowMs: number,
  facts: readonly QueueFact[],
  conflicts: readonly (readonly [string, string])[] = [],
): Play {
  let current = observeAll(queue, nowMs, facts);
  const all: MergeAction[] = [];
  for (;;) {
    const actions = decide(current, nowMs);
    if (actions.length === 0) return { queue: current, actions: all };
    all.push(...actions);
    current = applyMergeActions(current, actions, nowMs);
    for (const action of actions) {
      if (action.type !== "test-merge") continue;
      const { base, commit } = action;
      const held = base.split("+");
      const isConflict = conflicts.some(
        ([a, b]) => (held.includes(a) && commit === b) || (held.includes(b) && commit === a),
      );
      const outcome: Tested = isConflict ? { type: "conflict", paths: ["x"] } : clean(base, commit);
      current = observeMerges(current, { type: "merge.tested", data: { base, commit, outcome } }, nowMs);
    }
  }
}

/** The end of the run that is under way for a gate and a tree. */
export function ended(
  { runs }: Pick<MergeQueue, "runs">,
  gate: string,
  tree: string,
  verdict: GateVerdict,
  trouble?: string,
): QueueFact {
  const run = runs.find((one) => one.gate === gate && one.tree === tree)?.run;
  if (run === undefined) throw new Error(`no run of ${gate} on ${tree}, but ${runsOf({ runs }).join(", ")}`);
  const findings = verdict === "failed" ? [{ gate, text: "it fails" }] : [];
  return runEnded(run, verdict, findings, trouble);
}

export function runEnded(run: number, verdict: GateVerdict, findings: Finding[] = [], trouble?: string): QueueFact {
  const result = gateResultSchema.parse({ verdict, findings, durationMs: 1 });
  return { type: "gate.ended", data: { run, ...result, trouble } };
}

/** `gate tree` of each run that is under way. */
export function runsOf({ runs }: Pick<MergeQueue, "runs">): string[] {
  return runs.map(({ gate, tree }) => `${gate} ${tree}`).sort();
}
