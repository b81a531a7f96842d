import { type Gate, type GateVerdict, usualGates } from "@slipway/contract";
import type { MergeAction } from "./actions.ts";
import { applyMergeActions } from "./apply.ts";
import { decide } from "./decide.ts";
import { type MergeObservation, observeMerges } from "./observe.ts";
import { type MergeOutcome, type MergeQueue, type Offer, openQueue } from "./state.ts";

/** Main is `m`, and has merged what its name says: `m+a+b`. A tree is named after what it holds, in whatever order. */
const main = { commit: "m", tree: "tree:m" };

export function begin({ slots = 4, gates = usualGates }: { slots?: number; gates?: readonly Gate[] } = {}): MergeQueue {
  return openQueue({ gates, slots, main });
}

export function offered(id: string, more: Partial<Offer> = {}): MergeObservation {
  const offer = { id, task: id, attempt: `att-${id}`, dependencies: [], commit: id, tree: `tree:${id}`, tailMs: 0 };
  return { type: "offered", candidate: { ...offer, ...more } };
}

/** What git makes of merging a candidate into a base, when nothing conflicts. */
export function clean(base: string, commit: string): MergeOutcome {
  const parts = [...new Set([...base.split("+"), commit])].sort();
  return { type: "clean", commit: `${base}+${commit}`, tree: `tree:${parts.join("+")}` };
}

function observeAll(queue: MergeQueue, nowMs: number, observations: readonly MergeObservation[]): MergeQueue {
  return observations.reduce((current, observation) => observeMerges(current, observation, nowMs), queue);
}

/** One turn after some reports. */
export function after(queue: MergeQueue, nowMs: number, ...observations: readonly MergeObservation[]): MergeQueue {
  const observed = observeAll(queue, nowMs, observations);
  return applyMergeActions(observed, decide(observed, nowMs), nowMs);
}

/** What is done, and the queue after it. Test merges are answered at once, with conflicts between those that are named. */
export interface Play {
  readonly queue: MergeQueue;
  readonly actions: readonly MergeAction[];
}

export function play(
  queue: MergeQueue,
  nowMs: number,
  observations: readonly MergeObservation[],
  conflicts: readonly (readonly [string, string])[] = [],
): Play {
  let current = observeAll(queue, nowMs, observations);
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
      const outcome: MergeOutcome = isConflict ? { type: "conflict", paths: ["x"] } : clean(base, commit);
      current = observeMerges(current, { type: "merge-tested", base, commit, outcome }, nowMs);
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
): MergeObservation {
  const run = runs.find((one) => one.gate === gate && one.tree === tree)?.run;
  if (run === undefined) throw new Error(`no run of ${gate} on ${tree}, but ${runsOf({ runs }).join(", ")}`);
  const findings = verdict === "failed" ? [{ gate, text: "it fails" }] : [];
  return { type: "run-ended", run, verdict, findings, trouble };
}

/** `gate tree` of each run that is under way. */
export function runsOf({ runs }: Pick<MergeQueue, "runs">): string[] {
  return runs.map(({ gate, tree }) => `${gate} ${tree}`).sort();
}
