import type { AttemptId, CandidateId, CandidateStatus } from "@slipway/contract";
import type { MergingInput } from "../ports/merging.ts";
import type { CandidateRecord, GateResultRecord, MergeRecord } from "../ports/records.ts";
import type { MergeAction } from "./actions.ts";
import type { Candidate, MergeQueue } from "./state.ts";

export interface QueueChange {
  readonly input: MergingInput;
  readonly before: MergeQueue;
  /** With what was reported, and nothing decided yet. */
  readonly observed: MergeQueue;
  readonly after: MergeQueue;
  readonly actions: readonly MergeAction[];
}

/** The records of candidates that are not as they were. */
export function changedCandidates(change: QueueChange): readonly CandidateRecord[] {
  const { input, before, observed, after } = change;
  const known = new Map(input.candidates.map((record) => [record.id as string, record]));
  const seen = new Map([...before.candidates, ...observed.candidates].map((candidate) => [candidate.id, candidate]));
  return [...seen.values()].flatMap((candidate) => {
    const record = known.get(candidate.id) ?? newRecord(input, candidate);
    const open = after.candidates.find(({ id }) => id === candidate.id);
    const next = open === undefined ? ended(change, candidate, record) : standing(after, open, record);
    return JSON.stringify(next) === JSON.stringify(known.get(candidate.id)) ? [] : [next];
  });
}

function newRecord({ build, reports, nowMs }: MergingInput, { id, task, attempt, commit, tree }: Candidate) {
  const told = reports.find((report) => report.type === "candidate.offered" && report.data.candidate === id);
  const offer = told?.type === "candidate.offered" ? told.data.offer : 0;
  return {
    id: id as CandidateId,
    build,
    task,
    attempt: attempt as AttemptId,
    commit,
    position: 0,
    reason: null,
    status: "pending",
    createdAt: nowMs,
    endedAt: null,
    details: { offer, tree },
  } satisfies CandidateRecord;
}

function standing(queue: MergeQueue, { id, place }: Candidate, record: CandidateRecord): CandidateRecord {
  return { ...record, status: statusOf(queue, id, place), position: place ?? 0 };
}

function statusOf({ merging, runs }: MergeQueue, id: string, place: number | null): CandidateStatus {
  if (merging?.candidate === id) return "approved";
  return place !== null || runs.some(({ candidate }) => candidate === id) ? "verifying" : "pending";
}

function ended({ input, observed, actions }: QueueChange, { id, task }: Candidate, record: CandidateRecord) {
  const isMerged = observed.merged.includes(task) && !observed.candidates.some((candidate) => candidate.id === id);
  const end = isMerged ? undefined : actions.find((action) => "candidate" in action && endsIt(action, id));
  const status = isMerged || end?.type === "satisfy" ? "merged" : "rejected";
  const reason = isMerged ? null : reasonOf(end);
  return { ...record, status, reason, position: 0, endedAt: input.nowMs } satisfies CandidateRecord;
}

const endings: ReadonlySet<MergeAction["type"]> = new Set(["satisfy", "reject", "return-conflict", "discard"] as const);

function endsIt(action: Extract<MergeAction, { candidate: string }>, id: string): boolean {
  return endings.has(action.type) && action.candidate === id;
}

function reasonOf(action: MergeAction | undefined): string {
  switch (action?.type) {
    case "reject":
      return action.gate;
    case "return-conflict":
      return "conflict";
    case "discard":
      return "cancelled";
    case "satisfy":
      return "already on main";
    default:
      return "withdrawn";
  }
}

/** One for each run that has ended and was waited for. */
export function endedRuns({ build, reports, nowMs }: MergingInput, before: MergeQueue): readonly GateResultRecord[] {
  return reports.flatMap((report) => {
    if (report.type !== "gate.ended") return [];
    const { run, task: _task, gate: _gate, trouble: _trouble, ...result } = report.data;
    const ended = before.runs.find((one) => one.run === run);
    if (ended === undefined) return [];
    const { gate, candidate } = ended;
    return [{ build, candidate: candidate as CandidateId, gate, round: run, ...result, endedAt: nowMs }];
  });
}

/** A merge that has happened, and tasks that were found to be on main: these have moved it from nowhere to nowhere. */
export function endedMerges({ input, before, observed, after, actions }: QueueChange): readonly MergeRecord[] {
  const { build, nowMs } = input;
  const { merging } = before;
  const isMerged = merging !== null && observed.merging === null && observed.merged.includes(merging.task);
  const found = actions.flatMap((action) =>
    action.type === "satisfy" ? [{ ...action, from: action.main, to: action.main }] : [],
  );
  return [...(isMerged ? [merging] : []), ...found].map(({ candidate, task, from, to }) => ({
    build,
    candidate: candidate as CandidateId,
    task,
    commit: to,
    parent: from,
    mergedAt: nowMs,
    position: after.merged.indexOf(task) + 1,
  }));
}
