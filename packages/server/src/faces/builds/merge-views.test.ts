import { newId, usualGates } from "@slipway/contract";
import { type CandidateRecord, type GateResultRecord, type MergeQueue, openQueue } from "@slipway/engine";
import { expect, test } from "vitest";
import { candidateViews, mergeQueueViewOf } from "./merge-views.ts";

const build = newId("bld");

function record(task: string): CandidateRecord {
  return {
    id: newId("cnd"),
    build,
    task,
    attempt: newId("att"),
    status: "verifying",
    reason: null,
    commit: task,
    position: 0,
    createdAt: 7,
    endedAt: null,
    details: {},
  };
}

const [first, second, third] = [record("first"), record("second"), record("third")];
const records = [third, second, first];

function candidate({ id, task, attempt, commit }: CandidateRecord, place: number | null) {
  const offer = { id, task, attempt, commit, tree: `tree of ${task}`, dependencies: [], tailMs: 0 };
  return { ...offer, offeredAtMs: 7, place, suspicion: null };
}

const result = (gate: string, tree: string, more: object) => ({
  gate,
  tree,
  tasks: "",
  passed: false,
  failures: 0,
  errors: 0,
  trouble: null,
  notBeforeMs: 0,
  findings: [],
  failedAtMs: 0,
  failedAt: null,
  ...more,
});
const clean = (base: string, commit: string) => ({
  base,
  commit,
  outcome: { type: "clean" as const, commit: `${base}+${commit}`, tree: `tree ${base}+${commit}` },
});

const queue: MergeQueue = {
  ...openQueue({ gates: usualGates.toReversed(), slots: 4, main: { commit: "m", tree: "t" } }),
  candidates: [candidate(third, null), candidate(second, 9), candidate(first, 4)],
  testMerges: [clean("m", "first"), clean("m", "second"), clean("m+first", "second"), clean("first", "third")],
  runs: [
    {
      run: 1,
      gate: "main-test",
      candidate: second.id,
      base: "m+first",
      commit: "m+first+second",
      tree: "tree m+first+second",
      tasks: "",
      ahead: [],
      startedAtMs: 1,
    },
  ],
  results: [
    result("build", "tree of first", { passed: true, failures: 1 }),
    result("tests", "tree of first", { failures: 1 }),
    result("intent", "tree of first", { errors: 1 }),
    result("main-test", "tree m+first", { passed: true }),
    // On top of something that is not below it.
    result("main-test", "tree first+third", { passed: true }),
  ],
};

test("candidates are shown in the order of the line, with what is known of every gate, cheapest first", () => {
  const views = candidateViews(queue, records);
  expect(views.map(({ task, place }) => [task, place])).toEqual([
    ["first", 1],
    ["second", 2],
    ["third", null],
  ]);
  const states = views.map(({ gates }) => Object.fromEntries(gates.map(({ name, state }) => [name, state])));
  expect(states).toEqual([
    { compatibility: "passed", build: "passed", tests: "failed", intent: "broken", "main-test": "passed" },
    { compatibility: "passed", build: "open", tests: "open", intent: "open", "main-test": "running" },
    { compatibility: "running", build: "open", tests: "open", intent: "open", "main-test": "open" },
  ]);
  expect(views[0]?.gates.map(({ name }) => name)).toEqual(usualGates.map(({ name }) => name));
});

test("a candidate whose gate waits for a trouble to pass says which, by itself or on top of main", () => {
  const trouble = { times: 2, reason: "the disk is full" };
  const waits = [result("build", "tree of third", { trouble }), result("main-test", "tree m+first", { trouble })];
  const views = candidateViews({ ...queue, results: waits }, records);
  expect(views.map(({ reason }) => reason)).toEqual(["the disk is full", null, "the disk is full"]);
  expect(views[2]?.gates[1]).toEqual({ name: "build", state: "broken" });
});

const at = { criterion: "counts", check: 0, step: 3 };

function dispute(more: Partial<MergeQueue["disputes"][number]>): MergeQueue["disputes"][number] {
  const of = { number: 1, round: 1, task: "third", at, candidates: [third.id], because: null, advice: null };
  return { ...of, status: "due", by: "judge", openedAtMs: 1, ...more };
}

test.each<[string, Parameters<typeof dispute>[0], string | null]>([
  ["waits for the judge", {}, "until it is decided whether its check of counts is wrong"],
  ["is with the judge", { status: "underway" }, "until it is decided whether its check of counts is wrong"],
  ["waits for the user", { status: "user" }, "until you decide whether its check of counts is wrong"],
  ["the user has sent back", { status: "due", by: "user" }, "until its check of counts is compiled anew"],
  ["is compiled anew", { status: "underway", by: "user" }, "until its check of counts is compiled anew"],
  ["was wrong of the app", { status: "app" }, null],
  ["was wrong", { status: "check" }, null],
  ["is another check", { status: "user", at: { ...at, check: 1 } }, null],
])("a candidate is held while a check that it fails %s", (_, more, reason) => {
  const failed = result("intent", "tree of third", { failures: 2, failedAt: { ...at, step: 1 } });
  const passed = result("intent", "tree of first", { passed: true, failures: 1, failedAt: at });
  const views = candidateViews({ ...queue, results: [failed, passed], disputes: [dispute(more)] }, records);
  expect(views.map((view) => view.reason)).toEqual([null, null, reason]);
});

test("a conflict with main is a failed compatibility", () => {
  const conflict = { base: "m", commit: "third", outcome: { type: "conflict" as const, paths: ["a.ts"] } };
  const [, , last] = candidateViews({ ...queue, testMerges: [conflict] }, records);
  expect(last?.gates[0]).toEqual({ name: "compatibility", state: "failed" });
});

test("without a queue there are no candidates, and what was merged and how gates ended is still told", () => {
  const ran = (gate: string, verdict: GateResultRecord["verdict"], round: number): GateResultRecord => ({
    build,
    candidate: first.id,
    gate,
    round,
    verdict,
    score: null,
    parts: [],
    findings: [],
    artefacts: [],
    durationMs: 1,
    costMicroUsd: 0,
    endedAt: 1,
  });
  const merge = (task: string, position: number) => ({
    build,
    candidate: newId("cnd"),
    task,
    position,
    commit: `c${position}`,
    parent: "p",
    mergedAt: position,
  });
  const view = mergeQueueViewOf(null, {
    candidates: records,
    merges: [merge("later", 2), merge("sooner", 1)],
    gateResults: [
      ran("build", "passed", 1),
      ran("build", "failed", 2),
      ran("build", "passed", 3),
      ran("tests", "error", 4),
    ],
  });
  expect(view).toMatchObject({
    main: "c2",
    window: 0,
    candidates: [],
    merges: [{ task: "sooner" }, { task: "later" }],
  });
  expect(view.gates).toEqual([
    { name: "build", passed: 2, failed: 1, broken: 0 },
    { name: "tests", passed: 0, failed: 0, broken: 1 },
  ]);
});
