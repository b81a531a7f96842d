import type { CandidateId } from "@slipway/contract";
import type { ReportOf } from "../ports/reports.ts";
import { changeDispute, withoutCandidate } from "./apply.ts";
import { forgetMain } from "./forget.ts";
import { keyOf, withEnd } from "./results.ts";
import type { MergeQueue, Offer } from "./state.ts";

/** What a queue takes in: reports, and what its build says. A fact that comes twice, or too late, changes nothing. */
export type QueueFact =
  | ReportOf<"merge.tested" | "gate.ended" | "merge.ended" | "dispute.settled" | "order.dispute">
  /** What the build wants of the queue. */
  | { readonly type: "build.set"; readonly data: Partial<Pick<MergeQueue, "wish" | "slots" | "gates">> }
  | { readonly type: "offer.made"; readonly data: Offer }
  /** Its attempt has ended. */
  | { readonly type: "offer.withdrawn"; readonly data: { readonly candidate: CandidateId } };

export function observeMerges(queue: MergeQueue, fact: QueueFact, nowMs: number): MergeQueue {
  switch (fact.type) {
    case "build.set":
      // A cancel is final.
      return { ...queue, ...fact.data, ...(queue.wish === "cancel" && { wish: queue.wish }) };
    case "offer.made":
      return offered(queue, fact.data, nowMs);
    case "offer.withdrawn":
      return isOpen(queue, fact.data.candidate) ? withoutCandidate(queue, fact.data.candidate) : queue;
    case "merge.tested":
      return mergeTested(queue, fact.data);
    case "gate.ended":
      return runEnded(queue, fact.data, nowMs);
    case "merge.ended":
      return mergeEnded(queue, fact.data);
    case "dispute.settled":
      return disputeSettled(queue, fact.data);
    case "order.dispute":
      return ruled(queue, fact.data);
  }
}

/** A task has one candidate: a later one replaces the one before, unless that is as good as merged. */
function offered(queue: MergeQueue, offer: Offer, nowMs: number): MergeQueue {
  const isKnown = queue.ended.includes(offer.id) || queue.candidates.some(({ id }) => id === offer.id);
  if (isKnown) return queue;
  if (queue.merged.includes(offer.task) || queue.merging?.task === offer.task) {
    return { ...queue, ended: [...queue.ended, offer.id] };
  }
  const earlier = queue.candidates.find(({ task }) => task === offer.task);
  const { candidates, ...rest } = earlier ? withoutCandidate(queue, earlier.id) : queue;
  return { ...rest, candidates: [...candidates, { ...offer, offeredAtMs: nowMs, place: null, suspicion: null }] };
}

function isOpen({ candidates, merging }: MergeQueue, candidate: CandidateId): boolean {
  return merging?.candidate !== candidate && candidates.some(({ id }) => id === candidate);
}

function mergeTested(queue: MergeQueue, { base, commit, outcome }: ReportOf<"merge.tested">["data"]): MergeQueue {
  const testMerges = queue.testMerges.map((known) =>
    known.base === base && known.commit === commit && known.outcome === null ? { ...known, outcome } : known,
  );
  return { ...queue, testMerges };
}

function runEnded(queue: MergeQueue, { run, ...end }: ReportOf<"gate.ended">["data"], nowMs: number): MergeQueue {
  const ended = queue.runs.find((one) => one.run === run);
  if (ended === undefined) return queue;
  const runs = queue.runs.filter((one) => one !== ended);
  return { ...queue, runs, results: withEnd(queue.results, ended, end, nowMs) };
}

/** Also after a restart, whoever asked for the merge. */
function mergeEnded(queue: MergeQueue, { candidate, merged, main }: ReportOf<"merge.ended">["data"]): MergeQueue {
  const { merging, slots, window } = queue;
  if (merging?.candidate !== candidate) return queue;
  const after = { ...queue, main, merging: null };
  if (!merged) return forgetMain(after);
  const grown = Math.max(window, Math.min(slots, window + 1));
  const left = { ...withoutCandidate(after, candidate), merged: [...queue.merged, merging.task], window: grown };
  return forgetMain(left);
}

/** A wrong check that has no better one in its place waits for the user, as does what could not be decided. */
function disputeSettled(queue: MergeQueue, told: ReportOf<"dispute.settled">["data"]): MergeQueue {
  const { dispute: number, round, wrong, because, advice, replacement } = told;
  const known = queue.disputes.find((one) => one.number === number);
  if (known?.status !== "underway" || known.round !== round) return queue;
  if (wrong === "app") return changeDispute(queue, number, { status: "app", because, advice });
  if (replacement === null) return changeDispute(queue, number, { status: "user", because });
  return judgedAnew(changeDispute(queue, number, { status: "check", because }), known.at.criterion);
}

/** The gates that refused by the check run again. */
function judgedAnew(queue: MergeQueue, criterion: string): MergeQueue {
  const isOld = ({ failedAt, passed }: MergeQueue["results"][number]) => !passed && failedAt?.criterion === criterion;
  const old = new Set(queue.results.filter(isOld).map((one) => keyOf(one.gate, one)));
  const candidates = queue.candidates.map((one) =>
    one.suspicion && old.has(keyOf(one.suspicion.gate, one.suspicion)) ? { ...one, suspicion: null } : one,
  );
  return { ...queue, candidates, results: queue.results.filter((one) => !old.has(keyOf(one.gate, one))) };
}

function ruled(queue: MergeQueue, { dispute: number, wrong, because }: ReportOf<"order.dispute">["data"]): MergeQueue {
  const known = queue.disputes.find((one) => one.number === number);
  if (known?.status !== "user") return queue;
  const word = { by: "user", because } as const;
  if (wrong === "app") return changeDispute(queue, number, { ...word, status: "app", advice: because });
  return changeDispute(queue, number, { ...word, status: "due", round: known.round + 1 });
}
