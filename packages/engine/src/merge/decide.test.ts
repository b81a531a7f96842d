import { type Gate, usualGates } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { MergeAction } from "./actions.ts";
import { decide, underway } from "./decide.ts";
import { observeMerges, type QueueFact } from "./observe.ts";
import { nextWakeMs } from "./runs.ts";
import { digestOf, inLine, type MergeQueue, readQueue } from "./state.ts";
import {
  after,
  begin,
  ended,
  mergeEnded,
  movedTo,
  offered,
  type Play,
  play,
  runEnded,
  runsOf,
  wished,
  withdrawn,
} from "./testing.ts";

const alone = ["build", "tests", "intent"];
const minuteMs = 60_000;

/** Candidates that have passed all that is looked at without the others. */
function ready(ids: readonly string[], slots = 4, conflicts: readonly (readonly [string, string])[] = []): MergeQueue {
  let { queue } = play(
    begin({ slots: 100 }),
    0,
    ids.map((id) => offered(id)),
    conflicts,
  );
  for (const gate of alone) {
    const ends = ids.map((id) => ended(queue, gate, `tree:${id}`, "passed"));
    queue = play({ ...queue, slots }, 0, ends, conflicts).queue;
    if (gate !== "intent") queue = play({ ...queue, slots: 100 }, 0, [], conflicts).queue;
  }
  return queue;
}

function tested(queue: MergeQueue, tree: string, verdict: "passed" | "failed" | "error", nowMs = 1): Play {
  return play(queue, nowMs, [ended(queue, "main-test", tree, verdict)]);
}

function merged({ merging }: MergeQueue): QueueFact {
  if (merging === null) throw new Error("nothing is merged");
  const { candidate, to, tree } = merging;
  return mergeEnded(candidate, true, { commit: to, tree });
}

function kept(queue: MergeQueue): object {
  return JSON.parse(JSON.stringify(queue));
}

function only(actions: readonly MergeAction[], ...types: readonly MergeAction["type"][]): MergeAction[] {
  return actions.filter(({ type }) => types.includes(type));
}

describe("gates", () => {
  test("run cheapest first, and on the candidate alone before anything is tested on main", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    for (const gate of alone) {
      expect(runsOf(queue)).toEqual([`${gate} tree:a`]);
      queue = play(queue, 1, [ended(queue, gate, "tree:a", "passed")]).queue;
    }
    expect(runsOf(queue)).toEqual(["main-test tree:a+m"]);
  });

  test("of the same rank run at the same time", () => {
    const gates: Gate[] = [...usualGates, { name: "swarm", on: "candidate", rank: 1, limitMs: minuteMs }];
    const { queue } = play(begin({ gates }), 0, [offered("a")]);
    expect(runsOf(queue)).toEqual(["build tree:a", "swarm tree:a"]);
  });

  test("that are added while a candidate is tested on main must be passed, too", () => {
    const visual: Gate = { name: "visual", on: "main", rank: 9, limitMs: minuteMs };
    const swarm: Gate = { name: "swarm", on: "candidate", rank: 9, limitMs: minuteMs };
    const start = ready(["a"]);
    let { queue, actions } = tested({ ...start, gates: [...usualGates, visual, swarm] }, "tree:a+m", "passed");
    expect(only(actions, "merge")).toEqual([]);
    expect(runsOf(queue)).toEqual(["swarm tree:a", "visual tree:a+m"]);
    queue = play(queue, 2, [ended(queue, "swarm", "tree:a", "passed")]).queue;
    ({ queue, actions } = play(queue, 3, [ended(queue, "visual", "tree:a+m", "passed")]));
    expect(only(actions, "merge")).toHaveLength(1);
  });

  test("a failure is run once more, then it goes back with its findings", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    queue = play(queue, 1, [ended(queue, "build", "tree:a", "failed")]).queue;
    expect(runsOf(queue)).toEqual(["build tree:a"]);
    const { actions } = play(queue, 2, [ended(queue, "build", "tree:a", "failed")]);
    const findings = [{ gate: "build", text: "it fails" }];
    expect(actions).toEqual([
      {
        type: "reject",
        candidate: "a",
        task: "a",
        gate: "build",
        failedAt: null,
        tree: "tree:a",
        broken: false,
        unchanged: false,
        findings,
      },
    ]);
  });

  test("a failure that is not seen again is a flake, and is written down", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    queue = play(queue, 1, [ended(queue, "build", "tree:a", "failed")]).queue;
    queue = play(queue, 2, [ended(queue, "build", "tree:a", "passed")]).queue;
    expect(runsOf(queue)).toEqual(["tests tree:a"]);
    expect(queue.results).toMatchObject([{ gate: "build", tree: "tree:a", passed: true, failures: 1 }]);
  });

  test("a run that breaks is no failure: it is tried again after a while, and not for ever", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    queue = play(queue, 0, [ended(queue, "build", "tree:a", "error")]).queue;
    expect(runsOf(queue)).toEqual([]);
    expect(nextWakeMs(queue, 0)).toBe(15_000);
    queue = after(queue, 15_000);
    queue = after(queue, 20_000, ended(queue, "build", "tree:a", "error"));
    expect(nextWakeMs(queue, 20_000)).toBe(50_000);
    queue = after(queue, 50_000);
    const { queue: left, actions } = play(queue, 60_000, [ended(queue, "build", "tree:a", "error")]);
    expect(actions).toMatchObject([{ type: "reject", candidate: "a", gate: "build", broken: true }]);
    // Nothing is known about these files: they may come again.
    expect(runsOf(play(left, 61_000, [offered("a2", { task: "a", tree: "tree:a" })]).queue)).toEqual(["build tree:a"]);
  });

  test("a trouble that passes is waited for ten times, up to ten minutes each, and counts for nothing else", () => {
    const waits = [15, 30, 60, 120, 240, 480, 600, 600, 600, 600].map((seconds) => seconds * 1000);
    let { queue } = play(begin(), 0, [offered("a")]);
    let nowMs = 0;
    for (const waitMs of waits) {
      queue = after(queue, nowMs, ended(queue, "build", "tree:a", "error", "the disk is full"));
      expect(nextWakeMs(queue, nowMs)).toBe(nowMs + waitMs);
      expect(queue.results).toMatchObject([{ errors: 0, trouble: { reason: "the disk is full" } }]);
      nowMs += waitMs;
      queue = after(queue, nowMs);
    }
    const gone = after(queue, nowMs, ended(queue, "build", "tree:a", "passed"));
    expect(gone.results).toMatchObject([{ passed: true, trouble: null }]);
    const { actions } = play(queue, nowMs, [ended(queue, "build", "tree:a", "error", "the disk is full")]);
    expect(actions).toMatchObject([{ type: "reject", candidate: "a", gate: "build", broken: true }]);
  });

  test("a run that takes too long has broken", () => {
    const { queue } = play(begin(), 0, [offered("a")]);
    expect(nextWakeMs(queue, 0)).toBe(20 * minuteMs);
    expect(decide(queue, 20 * minuteMs - 1)).toEqual([]);
    expect(decide(queue, 20 * minuteMs)).toEqual([{ type: "cancel-run", run: 1, overdue: true }]);
    expect(after(queue, 20 * minuteMs).results).toMatchObject([{ gate: "build", failures: 0, errors: 1 }]);
  });

  test("the same files that have failed before fail at once", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    queue = play(queue, 1, [ended(queue, "build", "tree:a", "failed")]).queue;
    queue = play(queue, 2, [ended(queue, "build", "tree:a", "failed")]).queue;
    const { actions } = play(queue, 3, [offered("a2", { task: "a", tree: "tree:a" })]);
    expect(only(actions, "gate-run", "reject")).toMatchObject([{ type: "reject", candidate: "a2" }]);
  });

  test("the same files that have failed on main fail at once, with what was found", () => {
    let { queue } = tested(ready(["a"]), "tree:a+m", "failed");
    queue = tested(queue, "tree:a+m", "failed", 2).queue;
    const reread = readQueue(kept(queue)) ?? queue;
    const again = offered("a2", { task: "a", commit: "a", tree: "tree:a" });
    expect(only(play(reread, 3, [again]).actions, "gate-run", "reject")).toMatchObject([
      { candidate: "a2", gate: "main-test", unchanged: true, findings: [{ text: "it fails" }] },
    ]);
  });

  test("files that have failed are looked at again once main has moved", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    for (const nowMs of [1, 2]) queue = play(queue, nowMs, [ended(queue, "build", "tree:a", "failed")]).queue;
    const { actions } = play(movedTo(queue, "x"), 3, [offered("a2", { task: "a", commit: "a", tree: "tree:a" })]);
    expect(only(actions, "gate-run", "reject")).toMatchObject([{ type: "gate-run", gate: "build" }]);
  });

  test("a pass after a failure counts no longer once main has moved", () => {
    let { queue } = play(begin(), 0, [offered("a")]);
    queue = play(queue, 1, [ended(queue, "build", "tree:a", "failed")]).queue;
    queue = play(queue, 2, [ended(queue, "build", "tree:a", "passed")]).queue;
    queue = play(queue, 3, [ended(queue, "tests", "tree:a", "passed")]).queue;
    expect(runsOf(queue)).toEqual(["intent tree:a"]);
    expect(runsOf(play(movedTo(queue, "x"), 4, []).queue)).toEqual(["build tree:a"]);
  });

  test("nothing is run on a candidate before it is known how it goes with main", () => {
    expect(runsOf(after(begin(), 0, offered("a")))).toEqual([]);
    const { actions } = play(begin(), 0, [offered("a")], [["m", "a"]]);
    expect(only(actions, "gate-run")).toEqual([]);
  });
});

describe("a candidate that has nothing which main has not", () => {
  const nothing = offered("a", { commit: "m", tree: "tree:m" });

  test("has main itself looked at for its task, and is satisfied when that passes", () => {
    const { queue } = play(begin(), 0, [nothing]);
    expect(queue.runs).toMatchObject([
      { gate: "main-test", candidate: "a", base: "m", commit: "m", tree: "tree:m", tasks: digestOf(["a"]), ahead: [] },
    ]);
    const { queue: left, actions } = tested(queue, "tree:m", "passed");
    expect(actions).toEqual([{ type: "satisfy", candidate: "a", task: "a", main: "m" }]);
    expect(left).toMatchObject({ candidates: [], merged: ["a"], merging: null, main: { commit: "m" } });
    const dependent = offered("b", { dependencies: ["a"] });
    expect(runsOf(play(left, 2, [dependent]).queue)).toEqual(["build tree:b"]);
  });

  test("goes back with what main lacks, after a second look", () => {
    let { queue } = play(begin(), 0, [nothing]);
    queue = tested(queue, "tree:m", "failed").queue;
    expect(runsOf(queue)).toEqual(["main-test tree:m"]);
    const { actions } = tested(queue, "tree:m", "failed", 2);
    expect(actions).toMatchObject([
      { type: "reject", candidate: "a", gate: "main-test", findings: [{ text: "it fails" }] },
    ]);
  });

  test("is looked at again when main moves meanwhile", () => {
    const { queue } = play(begin(), 0, [nothing]);
    expect(runsOf(play(movedTo(queue, "m+x"), 1, []).queue)).toEqual(["main-test tree:m+x"]);
  });

  test("is not satisfied by what main has passed for others", () => {
    let queue = ready(["b"]);
    queue = tested(queue, "tree:b+m", "passed").queue;
    queue = play(queue, 2, [merged(queue)]).queue;
    const { actions } = play(queue, 3, [offered("a", { commit: "b", tree: "tree:b+m" })]);
    expect(only(actions, "gate-run", "satisfy")).toMatchObject([{ type: "gate-run", gate: "main-test" }]);
  });

  test("waits while main moves", () => {
    const start = tested(ready(["b"]), "tree:b+m", "passed").queue;
    expect(start.merging).not.toBe(null);
    const { queue } = play(start, 1, [nothing]);
    expect(only(tested(queue, "tree:m", "passed", 2).actions, "satisfy")).toEqual([]);
  });
});

describe("files that two tasks have in common", () => {
  const gates = usualGates.filter(({ name }) => name === "intent" || name === "main-test");
  const twins = [offered("a", { tree: "tree:same" }), offered("b", { tree: "tree:same" })];

  test("are looked at for each of them: another criterion may be due", () => {
    let { queue } = play(begin({ gates }), 0, twins);
    expect(runsOf(queue)).toEqual(["intent tree:same", "intent tree:same"]);
    const ofA = queue.runs.find(({ candidate }) => candidate === "a")?.run ?? 0;
    queue = play(queue, 1, [runEnded(ofA, "passed")]).queue;
    expect(inLine(queue).map(({ id }) => id)).toEqual(["a"]);
    expect(runsOf(queue)).toEqual(["intent tree:same", "main-test tree:a+m"]);
  });

  test("are tested on main for all the tasks that they are to have done", () => {
    const queue = ready(["a", "b"]);
    expect(queue.runs.map(({ tree, tasks }) => [tree, tasks])).toEqual([
      ["tree:a+m", digestOf(["a"])],
      ["tree:a+b+m", digestOf(["b", "a"])],
    ]);
    const passed = tested(queue, "tree:a+m", "passed").queue;
    expect(passed.merging).toMatchObject({ candidate: "a" });
    const others = passed.results.map((result) => ({ ...result, tasks: digestOf(["other"]) }));
    const { actions } = play({ ...queue, results: [...queue.results, ...others] }, 1, []);
    expect(only(actions, "merge")).toEqual([]);
  });

  test("are known by as much however many tasks there are, and also where all names were kept", () => {
    const merged = Array.from({ length: 1000 }, (_, index) => `task-${index}`);
    const begun = play({ ...ready(["a"]), merged, runs: [] }, 1, []).queue;
    const { queue } = tested(begun, "tree:a+m", "failed");
    const [result] = queue.results.filter(({ gate }) => gate === "main-test");
    expect(JSON.stringify(result).length).toBeLessThan(500);
    expect(result?.tasks).toBe(digestOf([...merged, "a"]));
    const results = queue.results.map((one) => (one === result ? { ...one, tasks: ["a", ...merged] } : one));
    expect(readQueue({ ...kept(queue), results })).toEqual(queue);
  });

  test("and that have passed after a failure are tested again on a main that has more by now", () => {
    let { queue } = tested(ready(["a"]), "tree:a+m", "failed");
    queue = tested(queue, "tree:a+m", "passed").queue;
    queue = { ...play(queue, 2, [withdrawn("a")]).queue, merging: null };
    queue = { ...queue, main: { commit: "m+b", tree: "tree:b+m" }, merged: ["b"] };
    // Built on main, and without what main has: git takes its files as they are.
    const again = observeMerges(queue, offered("a2", { task: "a", tree: "tree:a" }), 3);
    const outcome = { type: "clean", commit: "m+b+a2", tree: "tree:a+m" } as const;
    const testMerges = [{ base: "m+b", commit: "a2", outcome }];
    expect(runsOf(play({ ...again, testMerges, gates: usualGates.slice(-1) }, 3, []).queue)).toEqual([
      "main-test tree:a+m",
    ]);
  });
});

describe("the line", () => {
  test("tests each on top of those ahead, and merges them in order without testing again", () => {
    let queue = ready(["a", "b"]);
    expect(runsOf(queue)).toEqual(["main-test tree:a+b+m", "main-test tree:a+m"]);
    let actions: readonly MergeAction[];
    ({ queue, actions } = tested(queue, "tree:a+b+m", "passed"));
    expect(actions).toEqual([]);
    ({ queue, actions } = tested(queue, "tree:a+m", "passed"));
    expect(actions).toEqual([{ type: "merge", candidate: "a", task: "a", from: "m", to: "m+a", tree: "tree:a+m" }]);
    ({ actions } = play(queue, 2, [merged(queue)]));
    expect(only(actions, "merge", "gate-run")).toEqual([
      { type: "merge", candidate: "b", task: "b", from: "m+a", to: "m+a+b", tree: "tree:a+b+m" },
    ]);
  });

  test("goes on without one that fails on main, while that is looked at again", () => {
    const { queue, actions } = tested(ready(["a", "b"]), "tree:a+m", "failed");
    expect(only(actions, "set-aside", "cancel-run")).toMatchObject([{ candidate: "a", base: "m" }, { overdue: false }]);
    expect(runsOf(queue)).toEqual(["main-test tree:a+m", "main-test tree:b+m"]);
    expect(only(tested(queue, "tree:a+m", "failed", 2).actions, "reject")).toMatchObject([
      { candidate: "a", gate: "main-test", findings: [{ text: "it fails" }] },
    ]);
  });

  test("takes back one whose failure was a flake, behind the others", () => {
    let { queue } = tested(ready(["a", "b"]), "tree:a+m", "failed");
    queue = tested(queue, "tree:a+m", "passed", 2).queue;
    expect(runsOf(queue)).toEqual(["main-test tree:a+b+m", "main-test tree:b+m"]);
  });

  test("blames nobody for a failure on top of one that may be at fault", () => {
    // Whoever is behind a bad one fails with it.
    let { queue, actions } = tested(ready(["a", "b"]), "tree:a+b+m", "failed");
    expect(only(actions, "set-aside", "reject", "gate-run")).toEqual([]);
    ({ queue, actions } = tested(queue, "tree:a+m", "failed", 2));
    expect(only(actions, "set-aside")).toMatchObject([{ candidate: "a" }]);
    expect(runsOf(queue)).toEqual(["main-test tree:a+m", "main-test tree:b+m"]);
    queue = tested(queue, "tree:b+m", "passed", 3).queue;
    expect(queue.merging).toMatchObject({ candidate: "b", from: "m" });
  });

  test("looks at a failure again when the one ahead is merged: together they fail", () => {
    let { queue } = tested(ready(["a", "b"]), "tree:a+b+m", "failed");
    queue = tested(queue, "tree:a+m", "passed", 2).queue;
    const first = play(queue, 3, [merged(queue)]);
    expect(only(first.actions, "set-aside")).toMatchObject([{ candidate: "b", base: "m+a" }]);
    const second = tested(first.queue, "tree:a+b+m", "failed", 4);
    expect(only(second.actions, "reject")).toMatchObject([{ candidate: "b", gate: "main-test" }]);
  });

  test("is longer after each merge, up to the slots, and half as long after a failure", () => {
    let queue = ready(["a", "b", "c", "d", "e"]);
    expect([queue.window, queue.runs.length]).toEqual([2, 2]);
    queue = tested(queue, "tree:a+m", "passed").queue;
    queue = play(queue, 2, [merged(queue)]).queue;
    expect([queue.window, queue.runs.length]).toEqual([3, 3]);
    queue = tested({ ...queue, window: 4 }, "tree:a+b+m", "failed").queue;
    expect(queue.window).toBe(2);
  });

  test("keeps what depends on a candidate behind it, and out of the line once that is gone", () => {
    let { queue } = play(begin({ gates: [] }), 0, []);
    const gates = usualGates.filter(({ on }) => on === "main");
    queue = play({ ...queue, gates }, 0, [offered("b", { dependencies: ["a"] })]).queue;
    expect(runsOf(queue)).toEqual([]);
    queue = play(queue, 1, [offered("a")]).queue;
    expect(runsOf(queue)).toEqual(["main-test tree:a+b+m", "main-test tree:a+m"]);
    const { queue: left, actions } = play(queue, 2, [withdrawn("a")]);
    expect(only(actions, "leave-line")).toEqual([{ type: "leave-line", candidate: "b", task: "b" }]);
    expect(runsOf(left)).toEqual([]);
  });

  test("tests nothing without what it depends on, while that waits for the fate of those ahead", () => {
    const gates = usualGates.filter(({ on }) => on === "main");
    const offers = [offered("a"), offered("b"), offered("c", { dependencies: ["b"] }), offered("d")];
    let { queue } = play({ ...begin({ gates, slots: 9 }), window: 4 }, 0, offers);
    expect(runsOf(queue)).toContain("main-test tree:a+b+c+m");
    queue = tested(queue, "tree:a+b+m", "failed").queue;
    expect(runsOf(queue)).toEqual(["main-test tree:a+d+m", "main-test tree:a+m"]);
  });

  test("takes the longest path first; who has waited as long as that goes before", () => {
    const gates = usualGates.filter(({ on }) => on === "main");
    const offers = [offered("short"), offered("long", { tailMs: 60 * minuteMs })];
    const { queue } = play(begin({ gates, slots: 1 }), 0, offers);
    expect(runsOf(queue)).toEqual(["main-test tree:long+m"]);
    const waited = play(begin({ gates, slots: 0 }), 0, [offered("old")]).queue;
    const { actions } = play({ ...waited, slots: 1 }, 61 * minuteMs, [offered("new", { tailMs: 60 * minuteMs })]);
    expect(only(actions, "gate-run")).toMatchObject([{ candidate: "old" }]);
  });
});

describe("conflicts", () => {
  const conflict = [["a", "b"]] as const;

  test("with main go back at once, with both sides", () => {
    const { queue, actions } = play(begin(), 0, [offered("a")], [["m", "a"]]);
    expect(only(actions, "return-conflict")).toEqual([
      { type: "return-conflict", candidate: "a", task: "a", main: "m", commit: "a", paths: ["x"] },
    ]);
    // What it was begun for is gone.
    expect(queue).toMatchObject({ candidates: [], runs: [] });
  });

  test("with one ahead wait for what becomes of it", () => {
    const queue = ready(["a", "b", "c"], 4, conflict);
    expect(runsOf(queue)).toEqual(["main-test tree:a+c+m", "main-test tree:a+m"]);
    const passed = play(queue, 1, [ended(queue, "main-test", "tree:a+m", "passed")], conflict).queue;
    const { actions } = play(passed, 2, [merged(passed)], conflict);
    expect(only(actions, "return-conflict")).toMatchObject([{ candidate: "b", main: "m+a", commit: "b" }]);
  });

  test("with one ahead are none when that is sent back", () => {
    const queue = ready(["a", "b"], 4, conflict);
    const left = play(queue, 1, [withdrawn("a")], conflict).queue;
    expect(runsOf(left)).toEqual(["main-test tree:b+m"]);
  });

  test("that only the line shows hold up nobody behind", () => {
    // No gate asks how candidates go together.
    const gates = usualGates.filter(({ on }) => on === "main");
    const offers = ["a", "b", "c"].map((id) => offered(id));
    const { queue } = play({ ...begin({ gates }), window: 4 }, 0, offers, conflict);
    expect(runsOf(queue)).toEqual(["main-test tree:a+c+m", "main-test tree:a+m"]);
  });
});

describe("what happens in between", () => {
  test("a pause begins and merges nothing, and keeps what comes in", () => {
    let queue = observeMerges(ready(["a", "b"]), wished("pause"), 1);
    queue = after(queue, 2, ended(queue, "main-test", "tree:a+m", "passed"));
    expect(queue).toMatchObject({ merging: null, runs: [{ tree: "tree:a+b+m" }] });
    const { actions } = play(queue, 3, [wished("run")]);
    expect(only(actions, "merge", "gate-run")).toMatchObject([{ type: "merge", candidate: "a" }]);
  });

  test("a cancel is not taken back", () => {
    const queue = after(ready(["a"]), 1, wished("cancel"));
    expect(queue).toMatchObject({ candidates: [], runs: [], ended: ["a"] });
    expect(observeMerges(queue, wished("run"), 2)).toEqual(queue);
  });

  test("a later candidate of the task takes the place of the one before", () => {
    const { queue } = play(begin(), 0, [offered("a1", { task: "a" }), offered("a2", { task: "a" })]);
    expect(queue).toMatchObject({ candidates: [{ id: "a2" }], ended: ["a1"] });
  });

  test("nothing of a task is taken in that is merged, or about to be", () => {
    const { queue } = tested(ready(["a"]), "tree:a+m", "passed");
    const later = offered("a2", { task: "a" });
    expect(observeMerges(queue, later, 2)).toMatchObject({ candidates: [{ id: "a" }], ended: ["a2"] });
    const done = play(queue, 2, [merged(queue), later]).queue;
    expect(done).toMatchObject({ candidates: [], merged: ["a"], ended: ["a", "a2"] });
    expect(observeMerges(done, withdrawn("a"), 3)).toEqual(done);
  });

  test("a merge that is asked for is not taken back by a withdrawal", () => {
    const { queue } = tested(ready(["a"]), "tree:a+m", "passed");
    expect(observeMerges(queue, withdrawn("a"), 2)).toEqual(queue);
  });

  test("a merge that main was not there for is decided again on what it is now", () => {
    const { queue } = tested(ready(["a"]), "tree:a+m", "passed");
    const refused = mergeEnded("a", false, { commit: "x", tree: "tree:x" });
    expect(runsOf(play(queue, 2, [refused]).queue)).toEqual(["main-test tree:a+x"]);
  });

  test("after a restart the same runs, test merges and the merge are asked for", () => {
    const { queue } = tested(ready(["a", "b"]), "tree:a+m", "passed");
    const asked = after(queue, 2, offered("c"));
    expect(underway(JSON.parse(JSON.stringify(asked)))).toEqual([
      { type: "merge", candidate: "a", task: "a", from: "m", to: "m+a", tree: "tree:a+m" },
      { type: "test-merge", candidate: "c", task: "c", base: "m", commit: "c" },
      { type: "test-merge", candidate: "c", task: "c", base: "a", commit: "c" },
      { type: "test-merge", candidate: "c", task: "c", base: "b", commit: "c" },
      expect.objectContaining({ type: "gate-run", gate: "main-test", tree: "tree:a+b+m" }),
    ]);
    const found = mergeEnded("a", true, { commit: "m+a", tree: "tree:a+m" });
    expect(observeMerges(asked, found, 3)).toMatchObject({ merged: ["a"], merging: null, main: { commit: "m+a" } });
  });

  test("slots that are taken back are not filled again", () => {
    const queue = after(ready(["a", "b", "c"]), 1, { type: "build.set", data: { slots: 1 } });
    expect(queue.runs).toHaveLength(2);
    expect(tested(queue, "tree:a+b+m", "passed").queue.runs).toHaveLength(1);
  });
});
