import { compareIds, type Gate, type GateVerdict, usualGates } from "@slipway/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { MergeAction } from "./actions.ts";
import { applyMergeActions } from "./apply.ts";
import { decide, underway } from "./decide.ts";
import { observeMerges, type QueueFact } from "./observe.ts";
import { nextWakeMs } from "./runs.ts";
import type { GateRun, Main, MergeQueue } from "./state.ts";
import { begin, clean, mergeEnded, offered, runEnded, type Tested, wished, withdrawn } from "./testing.ts";

const extraGates: readonly Gate[] = [
  { name: "swarm", on: "candidate", rank: 1, limitMs: 60_000_000 },
  { name: "visual", on: "main", rank: 5, limitMs: 60_000_000 },
];
const names = Array.from({ length: 10 }, (_, index) => `c${index}`);
const aPair = fc
  .tuple(fc.nat(9), fc.nat(9))
  .filter(([a, b]) => a !== b)
  .map(([a, b]) => [`c${a}`, `c${b}`] as const);

/** A world whose truth is known: what fails alone, what only on main, and which do not go together. */
const worlds = fc.record({
  count: fc.integer({ min: 1, max: 10 }),
  slots: fc.integer({ min: 1, max: 6 }),
  gates: fc.constantFrom(usualGates, [...usualGates, ...extraGates], usualGates.slice(1)),
  /** Each fails one gate, wherever it is looked at. */
  bad: fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom("build", "tests", "intent", "main-test")), {
    maxLength: 3,
  }),
  /** Each passes alone, together they fail. */
  clashes: fc.array(aPair, { maxLength: 5 }),
  /** Git can not merge them. */
  conflicts: fc.array(aPair, { maxLength: 4 }),
  dependencies: fc.array(aPair, { maxLength: 3 }),
  tails: fc.array(fc.nat(1000), { minLength: 10, maxLength: 10 }),
  /** Of the first runs on a tree, by the number of the run: some fail or break for nothing. */
  flaky: fc.array(fc.nat(30), { maxLength: 4 }),
  breaking: fc.array(fc.nat(30), { maxLength: 4 }),
  /** What happens when, and in which order things end. */
  picks: fc.array(fc.nat(1000), { minLength: 1, maxLength: 60 }),
  troubles: fc.array(
    fc.record({
      at: fc.nat(60),
      kind: fc.constantFrom(...(["restart", "pause", "resume", "again", "slots", "withdraw", "move"] as const)),
    }),
    { maxLength: 6 },
  ),
});
type World = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

/** What was asked of the world, and what it has done. */
interface History {
  queue: MergeQueue;
  nowMs: number;
  /** Where main is in git, and what it holds in the order of its merges. */
  commit: string;
  readonly merged: string[];
  readonly rejected: Map<string, MergeAction>;
  readonly started: GateRun["run"][];
  /** What has been told once. */
  readonly told: QueueFact[];
  over: boolean;
}

test("main is green after every merge, and nothing is merged twice or before what it depends on", () => {
  explore((world, { merged }) => {
    merged.forEach((id, index) => {
      const held = merged.slice(0, index + 1);
      expect(faultsOf(world, held)).toEqual([]);
      for (const dependency of dependenciesOf(world, id)) expect(held).toContain(dependency);
    });
    expect(new Set(merged).size).toBe(merged.length);
  });
});

test("what can be merged is merged, and what is sent back has itself to blame or what is on main", () => {
  explore((world, { queue, merged, rejected, over }) => {
    expect(over).toBe(true);
    for (const [id, action] of rejected) {
      const alone = faultsOf(world, [id]);
      if (action.type === "return-conflict") expect(conflictsWith(world, id, merged)).toBe(true);
      else expect([...alone, ...faultsOf(world, [...merged, id])]).not.toEqual([]);
    }
    // Those that are left wait for what was sent back.
    for (const { id, dependencies } of queue.candidates) {
      expect(
        dependencies.some((task) => !merged.includes(task)),
        id,
      ).toBe(true);
    }
  });
});

test("a candidate costs few runs, and none is started twice", () => {
  explore((world, { started }) => {
    expect(new Set(started).size).toBe(started.length);
    const single = 2 * world.count * world.gates.length;
    const wasted = world.flaky.length + world.breaking.length + world.troubles.length;
    const speculative = (world.count + wasted) * (world.slots + 2) * 2;
    expect(started.length).toBeLessThanOrEqual(single + speculative + wasted * 2);
  });
});

test("never more runs than slots, and each of a gate on a tree once at a time", () => {
  explore(
    () => {},
    (_, before, after) => {
      expect(after.runs.length).toBeLessThanOrEqual(Math.max(after.slots, before.runs.length));
      const running = after.runs.map(({ gate, tree }) => `${gate} ${tree}`);
      expect(new Set(running).size).toBe(running.length);
      if (after.wish !== "run") expect(after.started).toBe(before.started);
    },
  );
});

test("nothing is merged that has not passed every gate on exactly these files", () => {
  explore(
    () => {},
    (actions, before, after) => {
      for (const action of actions) {
        if (action.type !== "merge") continue;
        expect(action.from).toBe(before.main.commit);
        const own = before.candidates.find(({ id }) => id === action.candidate)?.tree;
        for (const { name, on } of after.gates.filter((gate) => gate.on !== "others")) {
          const tree = on === "main" ? action.tree : own;
          expect(after.results).toContainEqual(expect.objectContaining({ gate: name, tree, passed: true }));
        }
      }
    },
  );
});

test("nothing is decided twice: after a turn there is nothing to do, until it wakes", () => {
  explore(
    () => {},
    (_, __, after, nowMs) => {
      expect(decide(after, nowMs)).toEqual([]);
      const wakeMs = nextWakeMs(after, nowMs) ?? nowMs + 1_000_000_000;
      expect(wakeMs).toBeGreaterThan(nowMs);
      expect(decide(after, wakeMs - 1)).toEqual([]);
    },
  );
});

test("the order in which anything is listed decides nothing", () => {
  explore(
    () => {},
    (actions, before, _, nowMs) => {
      const turned: MergeQueue = {
        ...before,
        gates: before.gates.toReversed(),
        merged: before.merged.toReversed(),
        candidates: before.candidates.toReversed(),
        testMerges: before.testMerges.toReversed(),
        runs: before.runs.toReversed(),
        results: before.results.toReversed(),
      };
      expect(decide(turned, nowMs)).toEqual(actions);
    },
  );
});

test("a report that comes again changes nothing", () => {
  explore((_, { queue, told, nowMs }) => {
    for (const fact of told) {
      if (fact.type === "merge.tested") continue;
      expect(observeMerges(queue, fact, nowMs)).toEqual(queue);
    }
  });
});

test("a cancel ends all but a merge that may have happened", () => {
  fc.assert(
    fc.property(worlds, fc.nat(40), (world, stop) => {
      const history = play(world, () => {}, stop);
      const { queue, nowMs } = history;
      const cancelled = turn(observeMerges(queue, wished("cancel"), nowMs), nowMs);
      expect(cancelled.runs).toEqual([]);
      expect(cancelled.candidates.map(({ id }) => id)).toEqual(queue.merging ? [queue.merging.candidate] : []);
      expect(underway(cancelled).filter(({ type }) => type !== "test-merge")).toHaveLength(queue.merging ? 1 : 0);
    }),
  );
});

type Check = (actions: readonly MergeAction[], before: MergeQueue, after: MergeQueue, nowMs: number) => void;

function explore(atEnd: (world: World, history: History) => void, atTurn: Check = () => {}): void {
  fc.assert(fc.property(worlds, (world) => atEnd(world, play(world, atTurn))));
}

function turn(queue: MergeQueue, nowMs: number): MergeQueue {
  return applyMergeActions(queue, decide(queue, nowMs), nowMs);
}

function play(world: World, check: Check, stopAfter = 5000): History {
  const history: History = {
    queue: begin({ slots: world.slots, gates: world.gates }),
    nowMs: 0,
    commit: "m",
    merged: [],
    rejected: new Map(),
    started: [],
    told: [],
    over: false,
  };
  const waiting = names.slice(0, world.count);
  for (let step = 0; step < stopAfter; step++) {
    history.nowMs += 1000;
    const pick = world.picks[step % world.picks.length] ?? 0;
    const trouble = world.troubles.find(({ at }) => at === step)?.kind;
    // Whoever was told to pause is told to go on at last.
    if (trouble) makeTrouble(world, history, trouble, step);
    else if (step === 70) tell(history, wished("run"));
    else if (waiting.length > 0 && pick % 3 === 0) arrive(world, history, waiting.shift() ?? "");
    else if (!happen(world, history, pick)) {
      if (waiting.length > 0) arrive(world, history, waiting.shift() ?? "");
      else if (step > 70 && !wake(history)) return { ...history, over: true };
    }
    const { queue, nowMs } = history;
    const actions = decide(queue, nowMs);
    history.queue = applyMergeActions(queue, actions, nowMs);
    check(actions, queue, history.queue, nowMs);
    for (const action of actions) {
      if (action.type === "gate-run") history.started.push(action.run);
      if (action.type === "reject" || action.type === "return-conflict") history.rejected.set(action.candidate, action);
    }
  }
  return history;
}

function arrive(world: World, history: History, id: string): void {
  const tailMs = 1000 * (world.tails[Number(id.slice(1))] ?? 0);
  tell(history, offered(id, { dependencies: dependenciesOf(world, id), tailMs }));
}

/** Time goes on to when something is due by itself; false when nothing is. */
function wake(history: History): boolean {
  const { queue, nowMs } = history;
  // It may have become due just now.
  if (decide(queue, nowMs).length > 0) return true;
  const wakeMs = nextWakeMs(queue, nowMs);
  history.nowMs = wakeMs ?? nowMs;
  return wakeMs !== null;
}

/** One of the things that are under way comes to its end; false when there is none. */
function happen(world: World, history: History, pick: number): boolean {
  const all = underway(history.queue);
  const action = all[pick % Math.max(1, all.length)];
  if (action === undefined) return false;
  switch (action.type) {
    case "test-merge": {
      const { base, commit } = action;
      const isConflict = conflictsWith(world, commit, base.split("+"));
      const outcome: Tested = isConflict ? { type: "conflict", paths: ["x"] } : clean(base, commit);
      tell(history, { type: "merge.tested", data: { base, commit, outcome } });
      break;
    }
    case "merge":
      mergeInGit(history, action);
      tellMain(history, action);
      break;
    case "gate-run": {
      const verdict = verdictOf(world, history.queue, action);
      tell(history, runEnded(action.run, verdict));
    }
  }
  return true;
}

/** As a host does it: main moves when it is where it should be, and nothing happens when it has moved already. */
function mergeInGit(history: History, { candidate, from, to }: Extract<MergeAction, { type: "merge" }>): void {
  if (history.commit !== from) return;
  history.commit = to;
  history.merged.push(candidate);
}

function tellMain(history: History, { candidate }: Extract<MergeAction, { type: "merge" }>): void {
  const { commit, merged } = history;
  tell(history, mergeEnded(candidate, merged.includes(candidate), mainAt(commit)));
}

function mainAt(commit: string): Main {
  return { commit, tree: `tree:${commit.split("+").sort().join("+")}` };
}

function makeTrouble(world: World, history: History, kind: World["troubles"][number]["kind"], step: number): void {
  switch (kind) {
    case "restart": {
      // The coordinator dies after git has merged and before it was told; all it has is what it had written down.
      const pending = underway(history.queue).find((action) => action.type === "merge");
      if (pending && step % 2 === 0) mergeInGit(history, pending);
      history.queue = JSON.parse(JSON.stringify(history.queue));
      break;
    }
    case "pause":
      tell(history, wished("pause"));
      break;
    case "resume":
      tell(history, wished("run"));
      break;
    case "slots":
      tell(history, { type: "build.set", data: { slots: 1 + (step % world.slots) } });
      break;
    case "withdraw": {
      const { candidates, merging } = history.queue;
      const candidate = candidates[step % Math.max(1, candidates.length)]?.id;
      if (candidate && candidate !== merging?.candidate) tell(history, withdrawn(candidate));
      break;
    }
    case "move":
      history.commit += `+x${step}`;
      break;
    case "again": {
      const { told } = history;
      const fact = told[step % Math.max(1, told.length)];
      if (fact) history.queue = observeMerges(history.queue, fact, history.nowMs);
    }
  }
}

function tell(history: History, fact: QueueFact): void {
  history.queue = observeMerges(history.queue, fact, history.nowMs);
  if (fact.type !== "build.set") history.told.push(fact);
}

/** Only a first run on a tree goes wrong for nothing: what fails twice is believed. */
function verdictOf(
  world: World,
  { results }: MergeQueue,
  run: Extract<MergeAction, { type: "gate-run" }>,
): GateVerdict {
  const isFirst = !results.some(({ gate, tree }) => gate === run.gate && tree === run.tree);
  if (isFirst && world.breaking.includes(run.run)) return "error";
  if (isFirst && world.flaky.includes(run.run)) return "failed";
  const held = run.tree.replace("tree:", "").split("+");
  return faultsOf(world, held).some((gate) => gate === run.gate) ? "failed" : "passed";
}

/** The gates that files with these candidates in them fail. */
function faultsOf({ bad, clashes, gates }: World, held: readonly string[]): string[] {
  const own = bad.filter(([id]) => held.includes(id)).map(([, gate]) => gate);
  const together = clashes.filter(([a, b]) => held.includes(a) && held.includes(b)).map(() => "main-test");
  return [...own, ...together].filter((gate) => gates.some(({ name }) => name === gate));
}

function conflictsWith({ conflicts }: World, id: string, held: readonly string[]): boolean {
  return conflicts.some(([a, b]) => (a === id && held.includes(b)) || (b === id && held.includes(a)));
}

/** Only on what has a lower name: there is no cycle. */
function dependenciesOf({ dependencies, count }: World, id: string): string[] {
  const on = dependencies.filter(([a, b]) => a === id && compareIds(b, a) < 0).map(([, b]) => b);
  return [...new Set(on)].filter((name) => names.indexOf(name) < count);
}
