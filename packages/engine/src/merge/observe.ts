import { withoutCandidate } from "./apply.ts";
import { forgetMain } from "./forget.ts";
import { withEnd } from "./results.ts";
import type { Main, MergeOutcome, MergeQueue, Offer, RunEnd } from "./state.ts";

/** What has happened outside. Reports can come twice, late, or about what is gone: then they change nothing. */
export type MergeObservation =
  | { readonly type: "wished"; readonly wish: MergeQueue["wish"] }
  | { readonly type: "slots-granted"; readonly slots: number }
  | { readonly type: "offered"; readonly candidate: Offer }
  /** Its attempt has ended. */
  | { readonly type: "withdrawn"; readonly candidate: string }
  | { readonly type: "merge-tested"; readonly base: string; readonly commit: string; readonly outcome: MergeOutcome }
  | ({ readonly type: "run-ended" } & RunEnd)
  /** Where main is after a merge was asked for; `merged`: that is part of it. Also after a restart, whoever asked. */
  | { readonly type: "merge-ended"; readonly candidate: string; readonly merged: boolean; readonly main: Main }
  /** By somebody else. */
  | { readonly type: "main-moved"; readonly main: Main };

export function observeMerges(queue: MergeQueue, observation: MergeObservation, nowMs: number): MergeQueue {
  switch (observation.type) {
    case "wished":
      // A cancel is not taken back.
      return queue.wish === "cancel" ? queue : { ...queue, wish: observation.wish };
    case "slots-granted":
      return { ...queue, slots: observation.slots };
    case "offered":
      return offered(queue, observation.candidate, nowMs);
    case "withdrawn":
      return isOpen(queue, observation.candidate) ? withoutCandidate(queue, observation.candidate) : queue;
    case "merge-tested":
      return mergeTested(queue, observation);
    case "run-ended":
      return runEnded(queue, observation, nowMs);
    case "merge-ended":
      return mergeEnded(queue, observation);
    case "main-moved":
      // A merge that is under way finds that out by itself.
      return queue.merging === null ? forgetMain({ ...queue, main: observation.main }) : queue;
  }
}

/** A task has one candidate: a later one takes the place of the one before, unless that is as good as merged. */
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

function isOpen({ candidates, merging }: MergeQueue, candidate: string): boolean {
  return merging?.candidate !== candidate && candidates.some(({ id }) => id === candidate);
}

function mergeTested(
  queue: MergeQueue,
  { base, commit, outcome }: Extract<MergeObservation, { type: "merge-tested" }>,
): MergeQueue {
  const testMerges = queue.testMerges.map((known) =>
    known.base === base && known.commit === commit && known.outcome === null ? { ...known, outcome } : known,
  );
  return { ...queue, testMerges };
}

function runEnded(queue: MergeQueue, { run, ...end }: RunEnd, nowMs: number): MergeQueue {
  const ended = queue.runs.find((one) => one.run === run);
  if (ended === undefined) return queue;
  const runs = queue.runs.filter((one) => one !== ended);
  return { ...queue, runs, results: withEnd(queue.results, ended, end, nowMs) };
}

function mergeEnded(
  queue: MergeQueue,
  { candidate, merged, main }: Extract<MergeObservation, { type: "merge-ended" }>,
): MergeQueue {
  const { merging, slots, window } = queue;
  if (merging?.candidate !== candidate) return queue;
  const after = { ...queue, main, merging: null };
  if (!merged) return forgetMain(after);
  const grown = Math.max(window, Math.min(slots, window + 1));
  const left = { ...withoutCandidate(after, candidate), merged: [...queue.merged, merging.task], window: grown };
  return forgetMain(left);
}
