import { type CandidateId, type CheckPlace, type Culprit, gateResultSchema } from "@slipway/contract";
import { expect, test } from "vitest";
import type { MergeAction } from "./actions.ts";
import { underway } from "./decide.ts";
import type { QueueFact } from "./observe.ts";
import type { MergeQueue } from "./state.ts";
import { begin, movedTo, offered, type Play, play, runsOf, withdrawn } from "./testing.ts";

const counts: CheckPlace = { criterion: "counts", check: 0, step: 3 };
const replacement = { before: {}, after: {} } as never;

/** The end of a gate in which these places, and nothing else, failed. */
function failedAt({ runs }: MergeQueue, gate: string, ...places: readonly CheckPlace[]): QueueFact {
  const run = runs.find((one) => one.gate === gate)?.run;
  if (run === undefined) throw new Error(`${gate} does not run, but ${runsOf({ runs }).join(", ")}`);
  const failed = places.map(({ criterion, ...at }) => ({ name: criterion, verdict: "failed" as const, failedAt: at }));
  const parts = [{ name: "adds", verdict: "passed" as const }, ...failed];
  const findings = places.map(({ criterion }) => ({ gate, text: `not ${criterion}` }));
  const result = gateResultSchema.parse({ verdict: "failed", parts, findings, durationMs: 1 });
  return { type: "gate.ended", data: { run, ...result } };
}

function passed({ runs }: MergeQueue, gate: string): QueueFact {
  const run = runs.find((one) => one.gate === gate)?.run ?? 0;
  return {
    type: "gate.ended",
    data: { run, ...gateResultSchema.parse({ verdict: "passed", findings: [], durationMs: 1 }) },
  };
}

/** Offers the files, and lets them fail the gate twice at these places. */
function fail(queue: MergeQueue, id: string, places = [counts], task = "list"): Play {
  let next = play(queue, 1, [offered(id, { task })]);
  for (const gate of ["build", "tests"]) next = play(next.queue, 1, [passed(next.queue, gate)]);
  const { queue: once } = play(next.queue, 1, [failedAt(next.queue, "intent", ...places)]);
  return play(once, 1, [failedAt(once, "intent", ...places)]);
}

function settled(
  wrong: Culprit | null,
  more: { round?: number; replaced?: boolean; dispute?: number } = {},
): QueueFact {
  const { round = 1, replaced = false, dispute = 1 } = more;
  const told = { dispute, round, wrong, because: "It is so.", advice: wrong === "app" ? "Count all of them." : null };
  return { type: "dispute.settled", data: { ...told, replacement: replaced ? replacement : null } };
}

const types = (actions: readonly MergeAction[]) => actions.map(({ type }) => type);
const disputed = () => fail(fail(begin(), "a").queue, "b");

test("two candidates of a task that fail at one step of a check, and pass all else, make it disputed", () => {
  const first = fail(begin(), "a");
  expect(types(first.actions)).toEqual(["reject"]);
  const { queue, actions } = fail(first.queue, "b");
  expect(actions).toEqual([
    {
      type: "open-dispute",
      candidate: "b",
      task: "list",
      dispute: 1,
      at: counts,
      candidates: ["a", "b"],
      asks: "judge",
    },
    { type: "settle-dispute", dispute: 1, round: 1, at: counts, candidates: ["a", "b"], without: "m", ruling: null },
  ]);
  expect(queue.candidates.map(({ id }) => id)).toEqual(["b"]);
  // It waits: neither is its gate run again, nor is it sent back.
  expect(runsOf(queue)).toEqual([]);
  expect(play(queue, 1e9, []).actions).toEqual([]);
  expect(underway(queue)).toEqual([actions[1]]);
});

test.each<[string, readonly [CheckPlace[], string][]]>([
  [
    "of two tasks",
    [
      [[counts], "list"],
      [[counts], "page"],
    ],
  ],
  [
    "at two steps",
    [
      [[counts], "list"],
      [[{ ...counts, step: 4 }], "list"],
    ],
  ],
  [
    "of two checks",
    [
      [[counts], "list"],
      [[{ ...counts, check: 1 }], "list"],
    ],
  ],
  [
    "beside others",
    [
      [[counts, { ...counts, criterion: "other" }], "list"],
      [[counts], "list"],
    ],
  ],
])("failures %s are rejected", (_, [one, two]) => {
  if (!one || !two) throw new Error("two failures are needed");
  const { queue } = fail(begin(), "a", ...one);
  expect(types(fail(queue, "b", ...two).actions)).toEqual(["reject"]);
});

test("the same files, offered again, are no second failure", () => {
  const { queue } = fail(begin(), "a");
  const again = play(queue, 2, [offered("b", { task: "list", commit: "a", tree: "tree:a" })]);
  expect(again.actions).toMatchObject([{ type: "reject", unchanged: true }]);
});

test("when the app is wrong, the candidate goes back with what agents may know", () => {
  const { actions } = play(disputed().queue, 2, [settled("app")]);
  expect(actions).toMatchObject([
    { type: "reject", candidate: "b", findings: [{ text: "not counts" }, { text: /right. Count all of them./ }] },
  ]);
});

test("when the check is wrong, the gate runs again with the one in its place", () => {
  const { queue } = play(disputed().queue, 2, [settled("check", { replaced: true })]);
  expect(runsOf(queue)).toEqual(["intent tree:b"]);
  expect(runsOf(play(queue, 3, [passed(queue, "intent")]).queue)).toEqual(["main-test tree:b+m"]);
});

test("a wrong check without one in its place, or one that nobody could judge, waits for the user", () => {
  for (const wrong of ["check", null] as const) {
    const { queue, actions } = play(disputed().queue, 2, [settled(wrong)]);
    expect(actions).toEqual([]);
    expect(queue.disputes).toMatchObject([{ status: "user" }]);
    expect(underway(queue)).toEqual([]);
  }
});

test("a second dispute of the same check is the user's", () => {
  for (const after of [[settled("app")], [settled("check", { replaced: true })]]) {
    const { queue } = play(disputed().queue, 2, [...after, withdrawn("b")]);
    const { actions } = fail(fail(queue, "c").queue, "d");
    expect(actions).toMatchObject([{ type: "open-dispute", dispute: 2, asks: "user" }]);
  }
});

test("after a ruling, two more candidates have to fail: neither the disputed one nor its files count again", () => {
  const { queue } = play(disputed().queue, 2, [settled("app")]);
  const once = fail(queue, "c");
  expect(types(once.actions)).toEqual(["reject"]);
  const same = play(once.queue, 3, [offered("e", { task: "list", commit: "a", tree: "tree:a" })]);
  expect(types(same.actions).filter((type) => type === "open-dispute")).toEqual([]);
  expect(fail(once.queue, "d").actions).toMatchObject([{ type: "open-dispute", candidates: ["c", "d"] }]);
});

test("while a check is disputed, a failure at another of its steps is rejected as any other", () => {
  const other = { ...counts, step: 7 };
  expect(types(fail(disputed().queue, "c", [other], "page").actions)).toEqual(["reject"]);
});

test("a candidate that failed something else in its first run has not failed one check alone", () => {
  let next = play(begin(), 1, [offered("a", { task: "list" })]);
  for (const gate of ["build", "tests"]) next = play(next.queue, 1, [passed(next.queue, gate)]);
  const { queue: once } = play(next.queue, 1, [failedAt(next.queue, "intent", { ...counts, criterion: "other" })]);
  const { queue } = play(once, 1, [failedAt(once, "intent", counts)]);
  expect(types(fail(queue, "b").actions)).toEqual(["reject"]);
});

test("the user's word is final for the app, and has a check compiled anew", () => {
  const waiting = play(disputed().queue, 2, [settled("check")]).queue;
  const order = (wrong: Culprit): QueueFact => ({
    type: "order.dispute",
    data: { dispute: 1, wrong, because: "Lists are not sorted." },
  });
  const back = play(waiting, 3, [order("app")]);
  expect(back.actions).toMatchObject([{ type: "reject", findings: [{}, { text: /Lists are not sorted\./ }] }]);
  const later = fail(fail(back.queue, "c").queue, "d");
  expect(types(later.actions)).toEqual(["reject"]);

  const anew = play(waiting, 3, [order("check")]);
  expect(anew.actions).toMatchObject([{ type: "settle-dispute", round: 2, ruling: "Lists are not sorted." }]);
  // What the judge said of the first round comes too late.
  expect(play(anew.queue, 4, [settled("app")]).actions).toEqual([]);
  const { queue } = play(anew.queue, 4, [settled("check", { round: 2, replaced: true })]);
  expect(runsOf(queue)).toEqual(["intent tree:b"]);
  expect(queue.disputes).toMatchObject([{ status: "check", by: "user" }]);
});

test("a word on what does not wait for the user, or is told twice, changes nothing", () => {
  const { queue } = disputed();
  const order: QueueFact = { type: "order.dispute", data: { dispute: 1, wrong: "app", because: "No." } };
  expect(play(queue, 2, [order]).queue).toEqual(queue);
  const once = play(queue, 2, [settled("check", { replaced: true })]).queue;
  expect(play(once, 2, [settled("app")]).queue).toEqual(once);
  expect(play(once, 2, [settled("check", { dispute: 7 })]).queue).toEqual(once);
});

test("a candidate of another task that fails the disputed check waits, too, and others go on", () => {
  const held = fail(disputed().queue, "c", [counts], "page");
  expect(held.actions.filter(({ type }) => type === "reject" || type === "open-dispute")).toEqual([]);
  const other = play(held.queue, 3, [offered("d", { task: "other" })]);
  expect(runsOf(other.queue)).toEqual(["build tree:d"]);
  // Main moves meanwhile: the dispute and its candidates stay.
  const moved = movedTo(other.queue, "m+x");
  expect(moved.disputes).toEqual(other.queue.disputes);
  expect(moved.candidates.map(({ id }) => id as CandidateId)).toEqual(expect.arrayContaining(["b", "c", "d"]));
});
