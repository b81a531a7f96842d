import type { CandidateStatus, Finding } from "@slipway/contract";
import type { MergingInput, MergingTurn, SettledOffer } from "../ports/merging.ts";
import type { CandidateRecord, DisputeRecord, GateResultRecord, MergeRecord } from "../ports/records.ts";
import type { ActionOf, MergeAction } from "./actions.ts";
import { isOpen } from "./disputes.ts";
import type { Candidate, MergeQueue } from "./state.ts";

interface QueueChange {
  readonly input: MergingInput;
  readonly before: MergeQueue;
  /** With what was reported, and nothing decided yet. */
  readonly observed: MergeQueue;
  readonly after: MergeQueue;
  readonly actions: readonly MergeAction[];
}

/** What a turn writes down about candidates and gates, and the answers to offers. */
export function recordTurn(change: QueueChange): Pick<MergingTurn, "records" | "settled"> {
  const seen = seenCandidates(change);
  const candidates = seen.filter(({ known, record }) => JSON.stringify(known) !== JSON.stringify(record));
  return {
    records: {
      candidates: candidates.map(({ record }) => record),
      gateResults: endedRuns(change),
      merges: endedMerges(change),
      disputes: disputeRecords(change),
    },
    settled: seen.flatMap((one) => settledOffer(change, one)),
  };
}

/** How a candidate leaves the queue. */
type Ending =
  | ActionOf<"satisfy" | "reject" | "return-conflict" | "discard">
  | { readonly type: "merged" }
  | { readonly type: "withdrawn" };

interface Seen {
  readonly candidate: Candidate;
  readonly known: CandidateRecord | undefined;
  readonly record: CandidateRecord;
  /** Null: it is still in the queue. */
  readonly ending: Ending | null;
}

function seenCandidates(change: QueueChange): Seen[] {
  const { input, before, observed, after } = change;
  const seen = new Map([...before.candidates, ...observed.candidates].map((candidate) => [candidate.id, candidate]));
  return [...seen.values()].map((candidate) => {
    const known = input.candidates.find(({ id }) => id === candidate.id);
    const record = known ?? newRecord(input, candidate);
    const open = after.candidates.find(({ id }) => id === candidate.id);
    if (open !== undefined) return { candidate, known, record: standing(after, open, record), ending: null };
    const ending = endingOf(change, candidate);
    return { candidate, known, record: { ...record, ...ended(ending), endedAt: input.nowMs }, ending };
  });
}

function newRecord({ build, reports, nowMs }: MergingInput, candidate: Candidate): CandidateRecord {
  const { id, task, attempt, commit, tree } = candidate;
  const told = reports.find((report) => report.type === "candidate.offered" && report.data.candidate === id);
  const offer = told?.type === "candidate.offered" ? told.data.offer : 0;
  const none = { position: 0, reason: null, endedAt: null };
  return { id, build, task, attempt, commit, ...none, status: "pending", createdAt: nowMs, details: { offer, tree } };
}

function standing(queue: MergeQueue, { id, place }: Candidate, record: CandidateRecord): CandidateRecord {
  return { ...record, status: statusOf(queue, id, place), position: place ?? 0 };
}

function statusOf({ merging, runs }: MergeQueue, id: string, place: number | null): CandidateStatus {
  if (merging?.candidate === id) return "approved";
  return place !== null || runs.some(({ candidate }) => candidate === id) ? "verifying" : "pending";
}

const endings: ReadonlySet<string> = new Set<Ending["type"]>(["satisfy", "reject", "return-conflict", "discard"]);

function endingOf(change: QueueChange, { id }: Candidate): Ending {
  if (mergeIn(change)?.candidate === id) return { type: "merged" };
  const isEnding = (action: MergeAction): action is MergeAction & Ending => endings.has(action.type);
  return change.actions.filter(isEnding).find((action) => action.candidate === id) ?? { type: "withdrawn" };
}

/** The move of main that was asked for before, and has happened. */
function mergeIn({ before: { merging }, observed }: QueueChange): MergeQueue["merging"] {
  return merging && observed.merging === null && observed.merged.includes(merging.task) ? merging : null;
}

function ended(ending: Ending): Pick<CandidateRecord, "status" | "reason" | "position"> {
  switch (ending.type) {
    case "merged":
      return { status: "merged", reason: null, position: 0 };
    case "satisfy":
      return { status: "merged", reason: "already on main", position: 0 };
    case "reject":
      return { status: "rejected", reason: ending.gate, position: 0 };
    case "return-conflict":
      return { status: "rejected", reason: "conflict", position: 0 };
    case "discard":
      return { status: "rejected", reason: "cancelled", position: 0 };
    case "withdrawn":
      return { status: "rejected", reason: "withdrawn", position: 0 };
  }
}

/** One for each run that has ended and was waited for. */
function endedRuns({ input: { build, reports, nowMs }, before }: QueueChange): readonly GateResultRecord[] {
  return reports.flatMap((report) => {
    if (report.type !== "gate.ended") return [];
    const { run, task: _task, gate: _gate, trouble: _trouble, ...result } = report.data;
    const ended = before.runs.find((one) => one.run === run);
    if (ended === undefined) return [];
    const { gate, candidate } = ended;
    return [{ build, candidate, gate, round: run, ...result, endedAt: nowMs }];
  });
}

/** A merge that has happened, and tasks that were found to be on main: these moved it from nowhere to nowhere. */
function endedMerges(change: QueueChange): readonly MergeRecord[] {
  const { build, nowMs: mergedAt } = change.input;
  const merge = mergeIn(change);
  const found = change.actions.flatMap((action) =>
    action.type === "satisfy" ? [{ ...action, from: action.main, to: action.main }] : [],
  );
  return [...(merge ? [merge] : []), ...found].map(({ candidate, task, from: parent, to: commit }) => {
    const position = change.after.merged.indexOf(task) + 1;
    return { build, candidate, task, commit, parent, mergedAt, position };
  });
}

/** A replacement stays in the record, whatever is told later. */
function disputeRecords({ input, before, after }: QueueChange): DisputeRecord[] {
  const known = new Set(before.disputes);
  return after.disputes
    .filter((one) => !known.has(one))
    .map(({ number, task, at, status, by, because, openedAtMs }) => {
      const open = status === "due" || status === "underway";
      const told = input.reports.find(
        (report) => report.type === "dispute.settled" && report.data.dispute === number && status === "check",
      );
      const replacement = told?.type === "dispute.settled" ? told.data.replacement : null;
      return {
        build: input.build,
        number,
        task,
        criterion: at.criterion,
        checkIndex: at.check,
        step: at.step,
        status: open ? "judge" : status,
        by,
        because,
        replacement: JSON.parse(JSON.stringify(replacement)),
        openedAt: openedAtMs,
        endedAt: isOpen({ status }) ? null : input.nowMs,
      };
    });
}

/** What the attempt is told, unless it has ended. */
function settledOffer({ input, observed }: QueueChange, { candidate, record, ending }: Seen): readonly SettledOffer[] {
  const owner = input.attempts.find(({ id }) => id === candidate.attempt);
  if (owner === undefined) return [];
  const name = { task: owner.task, attempt: owner.number, offer: Number(record.details["offer"] ?? 0) };
  const main = observed.main.commit;
  switch (ending?.type) {
    case "merged":
      return [{ ...name, type: "merged", fix: fixOf(input, candidate) }];
    case "satisfy":
      return [{ ...name, type: "satisfied", main: ending.main }];
    case "reject": {
      const findings = findingsOf(ending, observed.main.tree);
      return [{ ...name, type: "returned", findings, main, unchanged: ending.unchanged }];
    }
    case "return-conflict":
      return [{ ...name, type: "returned", findings: [conflictFinding(ending.paths)], main, unchanged: false }];
    default:
      return [];
  }
}

function fixOf({ reports }: MergingInput, { id }: Candidate): string | undefined {
  const told = reports.find((report) => report.type === "merge.ended" && report.data.candidate === id);
  return told?.type === "merge.ended" ? told.data.fix : undefined;
}

/** These come after the gate's own findings: the first finding is what faces show of the offer. */
const sameAgain =
  "Nothing has changed in your files since this gate refused them: it did not run again, and its findings still stand.";
const nothingNew = "There is nothing in your work that main has not. It is main that was looked at for your task.";

function findingsOf(
  { gate, tree, broken, unchanged, findings }: ActionOf<"reject">,
  mainTree: string,
): readonly Finding[] {
  if (broken)
    return [{ gate, text: "This gate could not be run on your work, several times over: nothing was found." }];
  const found = findings.length > 0 ? findings : [{ gate, text: "It fails, and says nothing about why." }];
  if (unchanged) return [...found, { gate, text: sameAgain }];
  return tree === mainTree ? [...found, { gate, text: nothingNew }] : found;
}

const maxPathsTold = 50;

function conflictFinding(paths: readonly string[]): Finding {
  const told = paths.slice(0, maxPathsTold).join(", ");
  const where = paths.length === 0 ? "git cannot merge them" : `both have changed ${told}`;
  return { gate: "compatibility", text: `Main has moved on, and your work conflicts with it: ${where}.` };
}
