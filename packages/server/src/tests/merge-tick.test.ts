import { buildViewSchema, type CandidateId, coordinatorHeartbeatMs, endAs, newId } from "@slipway/contract";
import type { GateWork, MergeWork, WorkItem } from "@slipway/engine";
import { describe, expect, test } from "vitest";
import { viewOf } from "../faces/builds/views.ts";
import { task } from "../testing/plans.ts";
import { begin, plan } from "../testing/ticked-build.ts";

const name = (digit: string) => digit.repeat(40);
const main = { commit: name("a"), tree: name("b") };

/** A build of two tasks whose attempts work. */
async function build(settings: Parameters<typeof begin>[0] = {}) {
  const set = await begin(settings);
  await plan(set, [task("cart"), task("pay")]);
  return await withWorld(set);
}

/** With a world that answers what the merge queue asks for. */
async function withWorld(set: Awaited<ReturnType<typeof begin>>) {
  await set.tell("main.made", main, "main");
  for (const of of ["cart", "pay"]) await set.tell("attempt.heard", { task: of, attempt: 1, respawn: 0 });
  await set.turn();
  set.look();
  let run = new Map<number, GateWork>();
  let numbers = 0;
  const answerTests = async (items: readonly WorkItem[], { isClean = () => true, treeOf }: Play) => {
    for (const item of items) {
      if (item.type === "gate-run") run.set(item.run, item);
      if (item.type !== "test-merge") continue;
      const { base, commit } = item;
      const made = String(++numbers).padStart(40, "0");
      const clean = { type: "clean" as const, commit: made, tree: treeOf?.() ?? `${"f".repeat(20)}${made.slice(20)}` };
      const conflict = { type: "conflict" as const, paths: ["cart.ts"] };
      const outcome = isClean(item) ? clean : conflict;
      await set.tell("merge.tested", { base, commit, outcome });
    }
  };
  return {
    ...set,
    async offer(of: string, digit: string, offer = 1): Promise<CandidateId> {
      const candidate = newId("cnd");
      const life = { task: of, attempt: 1, respawn: 0, offer };
      await set.tell("candidate.offered", { ...life, candidate, commit: name(digit), tree: name(digit) }, candidate);
      return candidate;
    },
    /** Turns until the queue asks for nothing more; gates pass but for those that fail. */
    async settle(play: Play = {}): Promise<WorkItem[]> {
      const { fails = () => false, verdictOf = (gate) => (fails(gate) ? "failed" : "passed"), waitMs } = play;
      const seen: WorkItem[] = [];
      for (let turns = 0; turns < 60; turns++) {
        await set.turn();
        const items = set.look();
        seen.push(...items);
        await answerTests(items, play);
        for (const [number, gate] of run) {
          const verdict = verdictOf(gate);
          const findings = verdict === "failed" ? [{ gate: gate.gate, text: "the cart is empty" }] : [];
          await set.tell("gate.ended", { run: number, verdict, findings, durationMs: 5 }, `gate.ended:${number}`);
        }
        run = new Map();
        for (const item of items) {
          if (item.type !== "merge") continue;
          const { candidate, to: commit, tree } = item;
          const end = { candidate, merged: true, main: { commit, tree }, fix: "+ cart" };
          await set.tell("merge.ended", end, `merge.ended:${candidate}`);
        }
        if (items.length === 0 && (waitMs === undefined || seen.at(-1)?.type === "attempt")) break;
        if (waitMs !== undefined) set.pass(waitMs);
      }
      return seen;
    },
    records: <K extends "candidates" | "gateResults" | "merges">(kind: K) => set.store.builds.records(set.build, kind),
  };
}

interface Play {
  readonly verdictOf?: (gate: GateWork) => "passed" | "failed" | "error";
  readonly treeOf?: () => string;
  /** Passes between turns. */
  readonly waitMs?: number;
  readonly isClean?: (test: MergeWork) => boolean;
  readonly fails?: (gate: GateWork) => boolean;
}

const gates = (items: readonly WorkItem[]) => items.flatMap((item) => (item.type === "gate-run" ? [item.gate] : []));

describe("a candidate", () => {
  test("that passes every gate is merged, once, and its task and the books say so", async () => {
    const set = await build();
    const candidate = await set.offer("cart", "c");
    const seen = await set.settle();
    expect(gates(seen)).toEqual(["build", "tests", "intent", "main-test"]);
    expect(seen.filter(({ type }) => type === "merge")).toHaveLength(1);
    expect(seen).toContainEqual(expect.objectContaining({ type: "end-attempt", task: "cart", keepSandbox: false }));
    expect(await set.tasks()).toMatchObject({ cart: "merged", pay: "building" });
    expect(await set.records("candidates")).toMatchObject([{ id: candidate, status: "merged", endedAt: 1_000_000 }]);
    expect(await set.records("merges")).toMatchObject([{ candidate, task: "cart", position: 1, parent: main.commit }]);
    expect(await set.records("gateResults")).toHaveLength(4);
    await set.tell("merge.ended", { candidate, merged: true, main }, "again");
    expect(await set.settle()).toEqual([]);
    expect(await set.records("merges")).toHaveLength(1);
  });

  test("that fails a gate twice goes back to its attempt with what was found, which offers again", async () => {
    const set = await build();
    await set.offer("cart", "c");
    const seen = await set.settle({ fails: ({ gate }) => gate === "tests" });
    expect(gates(seen)).toEqual(["build", "tests", "tests"]);
    const answer = { offer: 1, findings: [{ gate: "tests", text: "the cart is empty" }], main: main.commit };
    expect(seen.at(-1)).toMatchObject({ type: "attempt", task: "cart", number: 1, answer });
    expect(await set.tasks()).toMatchObject({ cart: "building" });
    expect(await set.records("candidates")).toMatchObject([{ status: "rejected", reason: "tests" }]);
    expect(await set.events()).toContain("merge.rejected");
    await set.offer("cart", "d", 2);
    await set.settle();
    expect(await set.tasks()).toMatchObject({ cart: "merged" });
  });

  test("that is offered again as it was refused goes back at once, also after a restart, and is told so", async () => {
    const set = await build();
    await set.offer("cart", "c");
    const first = await set.settle({ fails: ({ gate }) => gate === "main-test", treeOf: () => name("e") });
    expect(gates(first)).toEqual(["build", "tests", "intent", "main-test", "main-test"]);
    set.restart();
    set.pass(1000);
    await set.offer("cart", "c", 2);
    const second = await set.settle({ treeOf: () => name("e") });
    expect(gates(second)).toEqual([]);
    const findings = [{ text: "the cart is empty" }, { text: expect.stringContaining("Nothing has changed") }];
    expect(second.at(-1)).toMatchObject({
      type: "attempt",
      number: 1,
      answer: { offer: 2, unchanged: true, findings },
    });
    // It was told, and has changed nothing: another attempt goes about it in another way.
    set.pass(1000);
    await set.offer("cart", "c", 3);
    expect(gates(await set.settle({ treeOf: () => name("e") }))).toEqual([]);
    const [cart] = (await set.store.builds.state(set.build)).attempts.filter((one) => one.task === "cart");
    expect(cart?.details).toMatchObject({ number: 2, level: 1 });
  });

  test("that conflicts with main goes back with the paths and the newer main", async () => {
    const set = await build();
    await set.offer("cart", "c");
    await set.settle();
    await set.offer("pay", "d");
    const seen = await set.settle({ isClean: (item) => !("commit" in item) || item.commit !== name("d") });
    const back = seen.find((item) => item.type === "attempt" && item.task === "pay");
    const [{ commit } = { commit: "" }] = await set.records("merges");
    expect(back).toMatchObject({ answer: { offer: 1, main: commit, findings: [{ gate: "compatibility" }] } });
    expect(await set.events()).toContain("merge.conflict");
  });

  test("that the quarantine refuses is answered without a gate", async () => {
    const set = await build();
    const findings = [{ gate: "quarantine", text: "nothing has changed" }];
    await set.tell("candidate.refused", { task: "cart", attempt: 1, respawn: 0, offer: 1, findings });
    await set.turn();
    expect(set.look()).toMatchObject([{ type: "attempt", task: "cart", answer: { offer: 1, findings, main: null } }]);
  });

  test("stays in the queue when the sandbox that it came from dies, which comes back only when it is rejected", async () => {
    const set = await build();
    await set.offer("cart", "c");
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: endAs("runner_lost") });
    await set.settle();
    expect(await set.tasks()).toMatchObject({ cart: "merged" });
    await set.offer("pay", "d");
    await set.tell("attempt.ended", { task: "pay", attempt: 1, respawn: 0, end: endAs("runner_lost") });
    const seen = await set.settle({ fails: ({ gate }) => gate === "build" });
    expect(seen).toContainEqual(expect.objectContaining({ type: "attempt", task: "pay", respawn: 1 }));
  });

  test("that is offered again as it was is tested again, and merged when its gates pass", async () => {
    const set = await build();
    await set.offer("cart", "c");
    for (const of of ["cart#1", "pay#1"]) set.heard.set(of, 10_000_000_000);
    // Nothing is known of a gate that broke: the same files are looked at anew.
    await set.settle({ verdictOf: ({ gate }) => (gate === "intent" ? "error" : "passed"), waitMs: 120_000 });
    expect(await set.records("candidates")).toMatchObject([{ status: "rejected", reason: "intent" }]);
    await set.offer("cart", "c", 2);
    await set.settle();
    expect(await set.tasks()).toMatchObject({ cart: "merged" });
  });

  test("that has nothing which main has not ends its task when main passes for it, and what waits for it begins", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay", ["cart"])]);
    const world = await withWorld(set);
    const candidate = await world.offer("cart", "a");
    const seen = await world.settle({ treeOf: () => main.tree });
    const { commit } = main;
    expect(seen.flatMap((item) => (item.type === "gate-run" ? [item] : []))).toMatchObject([
      { gate: "main-test", task: "cart", base: commit, commit, tree: main.tree },
    ]);
    expect(seen.filter(({ type }) => type === "merge")).toEqual([]);
    expect(seen).toContainEqual(expect.objectContaining({ type: "end-attempt", task: "cart", keepSandbox: false }));
    expect(seen.at(-1)).toMatchObject({ type: "attempt", task: "pay", number: 1 });
    expect(await set.tasks()).toMatchObject({ cart: "satisfied", pay: "assigned" });
    const [cart] = (await set.store.builds.state(set.build)).tasks;
    expect(cart).toMatchObject({ id: "cart", reason: "already on main" });
    expect(await set.events()).toContain("task.satisfied");
    expect(await world.records("candidates")).toMatchObject([
      { id: candidate, status: "merged", reason: "already on main" },
    ]);
    // Gates of others count it as done from here on.
    expect(await world.records("merges")).toMatchObject([{ task: "cart", position: 1, commit, parent: commit }]);
  });

  test("that has nothing which main has not goes back with what main lacks", async () => {
    const set = await build();
    await set.offer("cart", "a");
    const seen = await set.settle({ treeOf: () => main.tree, fails: () => true });
    expect(gates(seen)).toEqual(["main-test", "main-test"]);
    const findings = [{ text: "the cart is empty" }, { text: expect.stringContaining("nothing in your work") }];
    expect(seen.at(-1)).toMatchObject({ type: "attempt", task: "cart", number: 1, answer: { findings } });
    expect(await set.tasks()).toMatchObject({ cart: "building" });
  });

  test("of an earlier life of its attempt is not taken", async () => {
    const set = await build();
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: endAs("runner_lost") });
    await set.turn();
    await set.offer("cart", "c");
    await set.settle();
    expect(await set.records("candidates")).toEqual([]);
  });
});

test("an attempt whose work comes back again and again is given up for the next level", async () => {
  const set = await build();
  for (let offer = 1; offer <= 6; offer++) {
    await set.offer("cart", String(offer), offer);
    await set.settle({ fails: ({ gate }) => gate === "tests" });
  }
  expect(await set.events()).toContain("task.retried");
  const open = (await set.store.builds.state(set.build)).attempts.find((one) => one.task === "cart");
  expect(open?.details).toMatchObject({ number: 2, level: 1, offer: null, answer: null });
});

describe("a task that a gate has refused", () => {
  /** As users see it. */
  const refused = async (set: Awaited<ReturnType<typeof build>>, task = "cart") => {
    const stored = await set.store.builds.state(set.build);
    const parts = { source: null, said: [], checked: undefined, repository: "", isRepositoryMissing: false };
    const remoteEnd = { pullRequest: null, remoteFailure: null, result: null };
    const money = await set.store.ledger.balance(set.build);
    const view = viewOf(stored, { ...parts, money, preview: null, isNothingToShow: false, remoteEnd });
    expect(buildViewSchema.parse(JSON.parse(JSON.stringify(view)))).toEqual(view);
    return view.taskList.find(({ id }) => id === task)?.refused;
  };
  const long = `the cart\u001b[31m is ${"very ".repeat(200)}empty`;

  test("says by which one, why, how often, and what comes next", async () => {
    const set = await build();
    expect(await refused(set)).toBe(undefined);
    await set.offer("cart", "c");
    await set.settle({ fails: ({ gate }) => gate === "tests" });
    const first = { gate: "tests", finding: "the cart is empty", times: 1 };
    expect(await refused(set)).toEqual({ ...first, next: "its agent repairs it, attempt 1 of at most 13" });
    await set.offer("cart", "d", 2);
    await set.turn();
    expect(await refused(set)).toEqual({ ...first, next: "its gates look at what was offered since" });
    await set.settle({ fails: ({ gate }) => gate === "main-test" });
    expect(await refused(set)).toMatchObject({ gate: "main-test", times: 2 });
    await set.tell("order.pause", {});
    await set.turn();
    expect(await refused(set)).toMatchObject({ times: 2, next: "it goes on with the build" });
    expect(await refused(set, "pay")).toBe(undefined);
  });

  test("says so after its attempt was given up, and no more when it is merged", async () => {
    const set = await build();
    const findings = [{ gate: "offer", text: long }];
    for (let offer = 1; offer <= 6; offer++) {
      await set.tell("candidate.refused", { task: "cart", attempt: 1, respawn: 0, offer, findings });
      await set.turn();
    }
    const seen = await refused(set);
    expect(seen).toMatchObject({ gate: "offer", times: 6, next: "its agent repairs it, attempt 2 of at most 13" });
    expect(seen?.finding).toBe(`the cart is ${"very ".repeat(200)}`.slice(0, 299).concat("…"));
    const life = { task: "cart", attempt: 2, respawn: 0 };
    await set.tell("attempt.ended", { ...life, end: endAs("unavailable", "the disk is full") });
    await set.turn();
    expect(await refused(set)).toMatchObject({
      times: 6,
      next: "another attempt begins once this is over: unavailable: the disk is full",
    });
    await set.offer("pay", "d");
    await set.settle();
    expect(await refused(set, "pay")).toBe(undefined);
  });

  test("or whose attempt has failed by itself, says that", async () => {
    const set = await build();
    const end = endAs("checks_failed", "npm test fails");
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end });
    await set.turn();
    const next = "its agent repairs it, attempt 2 of at most 13";
    expect(await refused(set)).toEqual({ gate: "attempt", finding: "checks_failed: npm test fails", times: 1, next });
  });
});

test("after a restart all that the queue waits for is asked for again, and a merge that has happened counts once", async () => {
  const set = await build();
  const candidate = await set.offer("cart", "c");
  let merge: WorkItem | undefined;
  for (let turns = 0; merge === undefined && turns < 40; turns++) {
    await set.turn();
    const items = set.look();
    merge = items.find(({ type }) => type === "merge");
    set.restart();
    await set.turn();
    const again = set.reattached.at(-1) ?? [];
    const asked = items.filter(({ type }) => type === "test-merge" || type === "gate-run" || type === "merge");
    for (const item of asked) expect(again).toContainEqual(item);
    for (const item of asked) await answer(set, item);
  }
  await set.turn();
  expect(await set.records("merges")).toMatchObject([{ candidate, position: 1 }]);
  expect(await set.tasks()).toMatchObject({ cart: "merged" });
});

async function answer(set: Pick<Awaited<ReturnType<typeof begin>>, "tell">, item: WorkItem) {
  if (item.type === "test-merge") {
    const { base, commit } = item;
    await set.tell("merge.tested", { base, commit, outcome: { type: "clean", commit: name("e"), tree: name("e") } });
  } else if (item.type === "gate-run") {
    await set.tell("gate.ended", { run: item.run, verdict: "passed", findings: [], durationMs: 1 });
  } else if (item.type === "merge") {
    const { candidate, to: commit, tree } = item;
    for (let times = 0; times < 2; times++)
      await set.tell("merge.ended", { candidate, merged: true, main: { commit, tree } });
  }
}

test("a paused build begins no gate, and a cancelled one leaves nothing in its queue", async () => {
  const set = await build();
  await set.tell("order.pause", {});
  await set.turn();
  await set.offer("cart", "c");
  expect(gates(await set.settle())).toEqual([]);
  await set.tell("order.resume", {});
  expect(gates(await set.settle({ fails: ({ gate }) => gate === "intent" }))).toContain("build");
  await set.offer("pay", "d");
  await set.tell("order.cancel", {});
  await set.turn();
  expect(await set.status()).toBe("cancelled");
  const left = (await set.records("candidates")).map(({ task: of, status }) => `${of} ${status}`);
  expect(left.filter((text) => text.startsWith("pay"))).toEqual(["pay rejected"]);
});

describe("a build that is to end while main moves", () => {
  const untilMerge = async () => {
    const set = await build({ timeoutMs: 60_000 });
    const candidate = await set.offer("cart", "c");
    for (;;) {
      await set.turn();
      const items = set.look();
      const merge = items.find((item) => item.type === "merge");
      if (merge !== undefined) return { ...set, candidate, merge };
      for (const item of items) await answer(set, item);
    }
  };
  const ends = {
    "is cancelled": ["cancelled", async (set: Awaited<ReturnType<typeof untilMerge>>) => set.tell("order.cancel", {})],
    "has had its time": ["failed", async (set: Awaited<ReturnType<typeof untilMerge>>) => set.pass(60_000)],
  } as const;

  test.each(Object.entries(ends))("because it %s ends when the move is in the books", async (_, [status, end]) => {
    const set = await untilMerge();
    await end(set);
    expect(await set.turn()).toMatchObject({ over: false, waitMs: coordinatorHeartbeatMs });
    expect(await set.status()).toBe("running");
    // Nobody else goes on meanwhile.
    expect(set.look()).toMatchObject([{ type: "end-attempt", task: "pay" }]);
    expect(await set.turn()).toMatchObject({ over: false, waitMs: coordinatorHeartbeatMs });
    expect(set.look()).toEqual([]);
    // The driver dies, and the next one finds out what became of the move.
    set.restart();
    await set.turn();
    expect(set.reattached.at(-1)).toContainEqual(set.merge);
    await answer(set, set.merge);
    expect(await set.turn()).toEqual({ over: true });
    expect(await set.status()).toBe(status);
    expect(await set.records("merges")).toMatchObject([{ candidate: set.candidate, position: 1 }]);
    expect(await set.tasks()).toMatchObject({ cart: "merged", pay: "failed" });
  });
});

test("where main can be looked at is kept with the build", async () => {
  const set = await build();
  await set.tell("preview.ready", { address: "http://127.0.0.1:4000/" });
  await set.turn();
  expect((await set.store.builds.get(set.build)).details["preview"]).toBe("http://127.0.0.1:4000/");
});
