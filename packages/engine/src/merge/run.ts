import { usualGates } from "@slipway/contract";
import type { MergesUnderway, MergeTurn, MergingInput } from "../ports/merging.ts";
import type { Report } from "../ports/reports.ts";
import { isWork, tellMerging } from "./actions.ts";
import { applyMergeActions } from "./apply.ts";
import { decide, underway } from "./decide.ts";
import { observeMerges, type QueueFact } from "./observe.ts";
import { recordTurn } from "./records.ts";
import { nextWakeMs } from "./runs.ts";
import { type MergeQueue, openQueue, readQueue } from "./state.ts";

/** Takes in what was reported, and decides what the queue does next. */
export const mergeTurn: MergeTurn = (input) => {
  const { kept, reports, nowMs } = input;
  const before = readQueue(kept) ?? beginQueue(reports);
  if (before === null) return nothing;
  const observed = factsOf(before, input).reduce((queue, fact) => observeMerges(queue, fact, nowMs), before);
  const actions = decide(observed, nowMs);
  const after = applyMergeActions(observed, actions, nowMs);
  return {
    ...recordTurn({ input, before, observed, after, actions }),
    kept: JSON.parse(JSON.stringify(after)),
    items: actions.filter(isWork),
    events: actions.flatMap(tellMerging),
    moving: after.merging?.task ?? null,
    wakeMs: nextWakeMs(after, nowMs),
  };
};

export const mergesUnderway: MergesUnderway = (kept) => {
  const queue = readQueue(kept);
  return queue === null ? [] : underway(queue);
};

const nothing: ReturnType<MergeTurn> = {
  kept: null,
  settled: [],
  items: [],
  events: [],
  moving: null,
  wakeMs: null,
  records: { candidates: [], gateResults: [], merges: [], disputes: [] },
};

function beginQueue(reports: readonly Report[]): MergeQueue | null {
  const made = reports.find((report) => report.type === "main.made");
  return made === undefined ? null : openQueue({ gates: [], slots: 1, main: made.data });
}

function factsOf({ candidates }: MergeQueue, { wish, slots, reports, ...build }: MergingInput): readonly QueueFact[] {
  const open = new Set(build.attempts.map(({ id }) => id));
  const withdrawn = candidates.filter(({ attempt }) => !open.has(attempt));
  return [
    // Gates that were added since a build began count for it, too.
    { type: "build.set", data: { wish, slots, gates: usualGates } },
    ...reports.flatMap((report) => factOf(report, build)),
    ...withdrawn.map(({ id }) => ({ type: "offer.withdrawn", data: { candidate: id } }) as const),
  ];
}

function factOf(report: Report, { tasks, attempts }: Pick<MergingInput, "tasks" | "attempts">): QueueFact[] {
  switch (report.type) {
    case "candidate.offered": {
      const { candidate: id, task, attempt: number, respawn, commit, tree } = report.data;
      const attempt = attempts.find((one) => one.task === task && one.number === number && one.respawn === respawn);
      const known = tasks().find((one) => one.id === task);
      if (attempt === undefined || known === undefined) return [];
      const { dependencies, tailMs } = known;
      return [{ type: "offer.made", data: { id, task, attempt: attempt.id, dependencies, commit, tree, tailMs } }];
    }
    case "merge.tested":
    case "gate.ended":
    case "merge.ended":
    case "dispute.settled":
    case "order.dispute":
      return [report];
    default:
      return [];
  }
}
