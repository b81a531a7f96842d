import { type CandidateId, usualGates } from "@slipway/contract";
import type { Merging, MergingInput, MergingTurn } from "../ports/merging.ts";
import type { Report } from "../ports/reports.ts";
import type { MergeWork } from "../ports/work.ts";
import type { MergeAction } from "./actions.ts";
import { applyMergeActions } from "./apply.ts";
import { decide, underway } from "./decide.ts";
import { keepQueue, readQueue } from "./kept.ts";
import { type MergeObservation, observeMerges } from "./observe.ts";
import { changedCandidates, endedMerges, endedRuns } from "./records.ts";
import { nextWakeMs } from "./runs.ts";
import { settledOffers } from "./settled.ts";
import { type MergeQueue, openQueue } from "./state.ts";
import { tellMerging } from "./tell.ts";

/** A build's merge queue, turn by turn. Gates that are new since a build began count for it, too. */
export function createMerging(gates = usualGates): Merging {
  return {
    turn(input) {
      const { kept, reports, wish, slots, nowMs } = input;
      const before = readQueue(kept) ?? beginQueue(reports);
      if (before === null) return nothing;
      const set = { ...observeMerges({ ...before, gates, slots }, { type: "wished", wish }, nowMs) };
      const observed = withoutAttempt(observe(set, input), input);
      const actions = decide(observed, nowMs);
      const after = applyMergeActions(observed, actions, nowMs);
      const settled = settledOffers({ input, before, observed, actions });
      const change = { input, before, observed, after, actions };
      return {
        kept: keepQueue(after),
        moving: after.merging?.task ?? null,
        settled,
        items: actions.flatMap((action) => itemOf(action, after)),
        records: {
          candidates: changedCandidates(change),
          gateResults: endedRuns(input, before),
          merges: endedMerges(change),
        },
        events: actions.flatMap((action) => tellMerging(action, observed)),
        wakeMs: nextWakeMs(after, nowMs),
      };
    },

    underway(kept) {
      const queue = readQueue(kept);
      return queue === null ? [] : underway(queue).flatMap((action) => itemOf(action, queue));
    },
  };
}

const nothing: MergingTurn = {
  kept: null,
  settled: [],
  items: [],
  events: [],
  moving: null,
  wakeMs: null,
  records: { candidates: [], gateResults: [], merges: [] },
};

function beginQueue(reports: readonly Report[]): MergeQueue | null {
  const made = reports.find((report) => report.type === "main.made");
  return made === undefined ? null : openQueue({ gates: [], slots: 1, main: made.data });
}

function observe(queue: MergeQueue, input: MergingInput): MergeQueue {
  return input.reports.reduce((current, report) => {
    const seen = observationOf(report, input);
    return seen === undefined ? current : observeMerges(current, seen, input.nowMs);
  }, queue);
}

function observationOf(report: Report, { tasks, attempts }: MergingInput): MergeObservation | undefined {
  switch (report.type) {
    case "candidate.offered": {
      const { candidate: id, task, attempt: number, respawn, commit, tree } = report.data;
      const attempt = attempts.find((one) => one.task === task && one.number === number && one.respawn === respawn);
      const known = tasks().find((one) => one.id === task);
      if (attempt === undefined || known === undefined) return undefined;
      const { dependencies, tailMs } = known;
      return { type: "offered", candidate: { id, task, attempt: attempt.id, dependencies, commit, tree, tailMs } };
    }
    case "merge.tested":
      return { type: "merge-tested", ...report.data };
    case "gate.ended": {
      const { run, verdict, findings, trouble } = report.data;
      return { type: "run-ended", run, verdict, findings, trouble };
    }
    case "merge.ended": {
      const { fix: _, ...end } = report.data;
      return { type: "merge-ended", ...end };
    }
    default:
      return undefined;
  }
}

/** What nobody stands for any more is not merged. */
function withoutAttempt(queue: MergeQueue, { attempts, nowMs }: MergingInput): MergeQueue {
  const open = new Set<string>(attempts.map(({ id }) => id));
  return queue.candidates
    .filter(({ attempt }) => !open.has(attempt))
    .reduce((current, { id }) => observeMerges(current, { type: "withdrawn", candidate: id }, nowMs), queue);
}

function itemOf(action: MergeAction, { candidates }: MergeQueue): readonly MergeWork[] {
  const taskOf = (candidate: string) => candidates.find(({ id }) => id === candidate)?.task ?? "";
  switch (action.type) {
    case "test-merge":
      return [{ ...action, candidate: action.candidate as CandidateId, task: taskOf(action.candidate) }];
    case "merge":
      return [{ ...action, candidate: action.candidate as CandidateId }];
    case "start-run":
      return [
        { ...action, type: "gate-run", candidate: action.candidate as CandidateId, task: taskOf(action.candidate) },
      ];
    case "cancel-run":
      return [{ type: "cancel-run", run: action.run }];
    default:
      return [];
  }
}
