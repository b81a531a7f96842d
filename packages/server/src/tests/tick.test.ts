import { type BuildId, endAs, newId } from "@slipway/contract";
import { report, type WorkItem } from "@slipway/engine";
import { describe, expect, test } from "vitest";
import { checks, hash, intent, locked, open, task } from "../testing/plans.ts";
import { begin, plan, sandboxOf } from "../testing/ticked-build.ts";
import { driver } from "../testing/world/store.ts";

const hourMs = 3_600_000;
const merged = endAs("merged");
const names = (items: readonly WorkItem[]) =>
  items.map((item) => ("task" in item ? `${item.type} ${item.task}` : item.type));

describe("before the plan", () => {
  test("a build runs its stages one after the other, and keeps what each made", async () => {
    const set = await begin();
    expect(await set.turn()).toMatchObject({ over: false });
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 1 }]);
    expect(await set.status()).toBe("planning");
    await set.turn();
    expect(set.look()).toEqual([]);
    await set.tell("intent.drafted", { open, start: { mode: "new" } });
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "lock", round: 1 }]);
    await set.tell("intent.locked", { locked, checks });
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "plan", round: 1 }]);
    await set.tell("plan.made", {
      plan: { mode: "new", intentHash: hash, tasks: [task("cart"), task("pay", ["cart"])] },
    });
    await set.turn();
    expect(names(set.look())).toEqual(["attempt cart"]);
    expect(await set.status()).toBe("running");
    const { builds } = set.store;
    expect(await builds.records(set.build, "intents")).toMatchObject([
      { hash, intent: { locked, start: { mode: "new" } } },
    ]);
    expect((await builds.records(set.build, "checks")).map(({ criterion }) => criterion)).toEqual(["a", "b"]);
    expect(await builds.records(set.build, "plans")).toMatchObject([
      { round: 1, tasks: [{ id: "cart" }, { id: "pay" }] },
    ]);
  });

  test("a held intent waits for its user, who may edit it until it is released", async () => {
    const set = await begin({ hold: "intent" });
    await set.turn();
    await set.tell("intent.drafted", { open, start: { mode: "new" } });
    await set.turn();
    set.look();
    const edited = { status: "open" as const, intent: { ...intent, coreValue: "give" } };
    await set.tell("intent.edited", { open: edited });
    await set.turn();
    expect(set.look()).toEqual([]);
    const [record] = await set.store.builds.records(set.build, "intents");
    expect(record).toMatchObject({ hash: null, intent: { open: edited, start: { mode: "new" } } });
    await set.tell("intent.released", {});
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "lock", round: 1 }]);
    await set.tell("intent.edited", { open });
    await set.turn();
    expect(await set.store.builds.records(set.build, "intents")).toEqual([record]);
  });

  test("a held plan begins when its user says so", async () => {
    const set = await begin({ hold: "plan" });
    expect(await plan(set, [task("cart")])).toMatchObject([{ stage: "draft" }, { stage: "lock" }, { stage: "plan" }]);
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "paused", reason: "user" });
    await set.tell("order.resume", {});
    await set.turn();
    expect(names(set.look())).toEqual(["attempt cart"]);
  });

  test("a stage that fails ends the build, and one without money pauses it until there is some", async () => {
    const set = await begin({ budgetMicroUsd: 10 });
    await set.turn();
    await set.tell("stage.failed", { stage: "draft", round: 1, code: "budget_exhausted", message: "no money" });
    await set.turn();
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "paused", reason: "budget" });
    await set.tell("order.budget", { budgetMicroUsd: 100 });
    set.look();
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 2 }]);
    expect(await set.store.ledger.balance(set.build)).toMatchObject({ budgetMicroUsd: 100 });
    await set.tell("stage.failed", { stage: "draft", round: 1, code: "invalid_answer", message: "late" });
    await set.turn();
    expect(await set.status()).toBe("planning");
    await set.tell("stage.failed", { stage: "draft", round: 2, code: "invalid_answer", message: "nonsense" });
    expect(await set.turn()).toEqual({ over: true });
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "failed", reason: "unplannable" });
  });

  test("a stage that was refused money begins again when its user says so", async () => {
    const set = await begin({ budgetMicroUsd: 10 });
    await set.turn();
    await set.tell("stage.failed", { stage: "draft", round: 1, code: "budget_exhausted", message: "no money" });
    await set.turn();
    set.look();
    set.pass(1000);
    await set.tell("order.resume", {});
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 2 }]);
    expect(await set.status()).toBe("planning");
  });

  test("a refusal from before a raise of the budget does not pause the build, and its stage begins again", async () => {
    const set = await begin({ budgetMicroUsd: 10 });
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 1 }]);
    await set.tell("order.budget", { budgetMicroUsd: 100 });
    await set.turn();
    const refusal = { stage: "draft", round: 1, code: "budget_exhausted", message: "no money" } as const;
    await set.tell("stage.failed", { ...refusal, budgetMicroUsd: 10 });
    await set.turn();
    expect(await set.status()).toBe("planning");
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 2 }]);
    expect(await set.store.ledger.balance(set.build)).toMatchObject({ budgetMicroUsd: 100 });
    // The same again, told later still.
    await set.tell("stage.failed", { ...refusal, budgetMicroUsd: 10 });
    await set.turn();
    expect(await set.status()).toBe("planning");
    expect(set.look()).toEqual([]);
    await set.tell("stage.failed", { ...refusal, round: 2, budgetMicroUsd: 100 });
    await set.turn();
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "paused", reason: "budget" });
  });
});

describe("with a plan", () => {
  test("outcomes lead to the next tasks, to the check, and to the end", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay", ["cart"])]);
    await set.tell("attempt.heard", { task: "cart", attempt: 1 });
    await set.turn();
    expect(await set.tasks()).toEqual({ cart: "building", pay: "pending" });
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: merged }, "cart#1");
    await set.turn();
    expect(names(set.look())).toEqual(["end-attempt cart", "attempt pay"]);
    await set.tell("attempt.ended", { task: "pay", attempt: 1, respawn: 0, end: merged });
    await set.turn();
    expect(names(set.look())).toEqual(["end-attempt pay", "check-satisfaction"]);
    await set.tell("satisfaction.checked", { round: 1, unsatisfied: ["a"] });
    await set.turn();
    expect(set.look()).toEqual([{ type: "plan-remaining", round: 1, unsatisfied: ["a"] }]);
    await set.tell("remaining.planned", { round: 1, tasks: [task("mend")] });
    await set.turn();
    expect(names(set.look())).toEqual(["attempt mend"]);
    expect(await set.store.builds.records(set.build, "plans")).toMatchObject([
      { round: 1 },
      { round: 2, intentHash: hash },
    ]);
    await set.tell("attempt.ended", { task: "mend", attempt: 1, respawn: 0, end: merged });
    await set.turn();
    await set.tell("satisfaction.checked", { round: 2, unsatisfied: [] });
    expect(await set.turn()).toEqual({ over: true });
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "succeeded", reason: "satisfied" });
    expect(await set.store.leases.expired()).toEqual([]);
    const attempts = await set.store.builds.records(set.build, "attempts");
    expect(attempts.map(({ status, reason }) => [status, reason])).toEqual(Array(3).fill(["ended", "merged"]));
  });

  test("nothing that nobody understands stops a build, nor does what is late or told twice", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    const ended = { task: "cart", attempt: 1, respawn: 0, end: endAs("checks_failed", "Error: 42") } as const;
    await set.store.events.report(set.build, [
      { type: "attempt.ended", data: { task: "cart" } },
      { type: "weather.changed", data: { to: "rain" } },
      report("attempt.ended", null, { ...ended, attempt: 9 }),
      report("attempt.ended", null, { ...ended, respawn: 3 }),
      report("attempt.ended", "one", ended),
      report("attempt.ended", "one", ended),
      report("attempt.ended", "two", ended),
    ]);
    await set.turn();
    expect(names(set.look())).toEqual(["end-attempt cart", "attempt cart"]);
    const [cart] = (await set.store.builds.state(set.build)).tasks;
    expect(cart).toMatchObject({
      attempts: 2,
      level: 1,
      details: { failures: [{ error: "checks_failed: error: #" }] },
    });
  });

  test.each([
    ["long", `Error: ${"word ".repeat(3000)}`],
    ["empty", ""],
    ["with a zero byte", "Error: \0 at \u0007"],
  ])("an error that is %s, and the fix of it, stop no build", async (_, error) => {
    const set = await begin();
    await plan(set, [task("cart")]);
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: endAs("checks_failed", error) });
    await set.turn();
    await set.tell("attempt.ended", { task: "cart", attempt: 2, respawn: 0, end: merged, fix: "\0 add a word" });
    await set.turn();
    expect(await set.tasks()).toEqual({ cart: "merged" });
  });

  test("records that are not the build's, or are told of again otherwise, stop no build", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    const checkpoint = { id: "c1", attempt: null, sandbox: null, snapshot: null, createdAt: 1, details: {} };
    const of = (build: BuildId, phase: string) => ({ checkpoint: { ...checkpoint, build, phase } });
    await set.tell("checkpoint.made", of(newId("bld"), "build"));
    await set.tell("checkpoint.made", of(set.build, "build"));
    await set.turn();
    await set.tell("checkpoint.made", of(set.build, "integrate"));
    await set.turn();
    const kept = await set.store.builds.records(set.build, "checkpoints");
    expect(kept).toMatchObject([{ id: "c1", phase: "build" }]);
  });

  test("an earlier life of an attempt says nothing about the one that works now", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: endAs("runner_lost") });
    await set.turn();
    await set.tell("attempt.offered", { task: "cart", attempt: 1, respawn: 0 });
    await set.turn();
    expect(await set.tasks()).toEqual({ cart: "assigned" });
    await set.tell("attempt.offered", { task: "cart", attempt: 1, respawn: 1 });
    await set.turn();
    expect(await set.tasks()).toEqual({ cart: "verifying" });
  });

  test("a plan for the rest that is refused twice pauses the build twice, and one that was refused before a raise does not", async () => {
    const set = await begin({ budgetMicroUsd: 1000 });
    await plan(set, [task("cart")]);
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: merged });
    await set.turn();
    await set.tell("satisfaction.checked", { round: 1, unsatisfied: ["a"] });
    await set.turn();
    for (const budgetMicroUsd of [1000, 2000]) {
      await set.tell("remaining.refused", { round: 1, budgetMicroUsd });
      await set.turn();
      expect(await set.store.builds.get(set.build)).toMatchObject({ status: "paused", reason: "budget" });
      await set.tell("order.budget", { budgetMicroUsd: budgetMicroUsd + 1000 });
      set.look();
      await set.turn();
      expect(set.look()).toEqual([{ type: "plan-remaining", round: 1, unsatisfied: ["a"] }]);
    }
    await set.tell("remaining.refused", { round: 1, budgetMicroUsd: 2000 });
    await set.turn();
    expect(await set.status()).toBe("running");
    expect(set.look()).toEqual([{ type: "plan-remaining", round: 1, unsatisfied: ["a"] }]);
  });

  test.each([
    ["merged", "merged"],
    ["checks_failed", "assigned"],
    ["unavailable", "pending"],
  ] as const)("an attempt that was refused money and ended since as %s has ended so", async (reason, status) => {
    const set = await begin({ budgetMicroUsd: 1000 });
    await plan(set, [task("cart")]);
    const life = { task: "cart", attempt: 1, respawn: 0 };
    await set.tell("attempt.ended", { ...life, end: endAs("budget"), budgetMicroUsd: 1000 });
    await set.tell("attempt.ended", { ...life, end: endAs(reason) });
    await set.turn();
    expect(await set.tasks()).toEqual({ cart: status });
    expect(await set.status()).toBe("running");
  });

  test("a task that a model has interrupted says what it waits for", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    const end = endAs("rate_limited", "for 3 hours");
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end });
    await set.turn();
    const { tasks } = await set.store.builds.state(set.build);
    expect(tasks).toMatchObject([{ status: "pending", reason: "rate_limited: for 3 hours" }]);
  });

  test("a plan for the rest that was refused money and is made since is carried out", async () => {
    const set = await begin({ budgetMicroUsd: 1000 });
    await plan(set, [task("cart")]);
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: merged });
    await set.turn();
    await set.tell("satisfaction.checked", { round: 1, unsatisfied: ["a"] });
    await set.turn();
    await set.tell("remaining.refused", { round: 1, budgetMicroUsd: 1000 });
    await set.turn();
    expect(await set.status()).toBe("paused");
    await set.tell("remaining.planned", { round: 1, tasks: [task("pay")] });
    await set.tell("order.budget", { budgetMicroUsd: 2000 });
    set.look();
    await set.turn();
    expect(names(set.look())).toEqual(["attempt pay"]);
  });

  test("what mended an error is offered when the error is back", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay", ["cart"])]);
    const failed = endAs("checks_failed", "TypeError: x is 7");
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: failed });
    await set.turn();
    await set.tell("attempt.ended", { task: "cart", attempt: 2, respawn: 0, end: merged, fix: "make x a string" });
    await set.turn();
    set.look();
    await set.tell("attempt.ended", {
      task: "pay",
      attempt: 1,
      respawn: 0,
      end: { ...failed, message: "TypeError: x is 8" },
    });
    await set.turn();
    const [, again] = set.look();
    expect(again).toMatchObject({
      type: "attempt",
      task: "pay",
      number: 2,
      level: 0,
      pattern: "checks_failed: typeerror: x is #",
    });
    expect(await set.store.patterns.find("ada/shop", ["checks_failed: typeerror: x is #"])).toMatchObject([
      { fix: "make x a string" },
    ]);
  });

  test("what an attempt failed with is kept in its own words, beside what names its kind", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    const error = "TypeError: Cart is 7\n  at /app/src/cart.ts:12\n\0expected 3\ngot 4";
    const message = "checks_failed: TypeError: Cart is 7\n  at /app/src/cart.ts:12\nexpected 3\ngot 4";
    const end = { task: "cart", respawn: 0, end: endAs("checks_failed", error) } as const;
    await set.tell("attempt.ended", { ...end, attempt: 1 });
    await set.turn();
    const kind = "checks_failed: typeerror: cart is #\nexpected #\ngot #";
    const { tasks } = await set.store.builds.state(set.build);
    expect(tasks).toMatchObject([{ details: { failures: [{ error: kind, message }] } }]);
    const ended = (await set.store.builds.records(set.build, "attempts")).filter(({ endedAt }) => endedAt !== null);
    expect(ended).toMatchObject([{ reason: message }]);
    for (let attempt = 2; attempt <= 8; attempt++) {
      await set.tell("attempt.ended", { ...end, attempt });
      await set.turn();
    }
    expect((await set.store.builds.state(set.build)).tasks).toMatchObject([{ status: "failed", reason: message }]);
  });

  test("an attempt that falls silent is respawned, and one that is heard is not", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay")]);
    await set.tell("attempt.heard", { task: "cart", attempt: 1 });
    await set.tell("attempt.heard", { task: "pay", attempt: 1 });
    await set.turn();
    set.pass(60_000);
    set.heard.set("pay#1", 1_060_000);
    await set.turn();
    expect(set.look()).toEqual([]);
    set.pass(40_000);
    await set.turn();
    expect(set.look()).toMatchObject([{ type: "attempt", task: "cart", number: 1, respawn: 1 }]);
    const late = { task: "cart", attempt: 1, respawn: 0, end: merged } as const;
    await set.tell("attempt.ended", late);
    await set.turn();
    expect(await set.tasks()).toMatchObject({ cart: "building" });
  });

  test("money that the ledger has spent pauses the build, and a higher budget lets it go on", async () => {
    const set = await begin({ budgetMicroUsd: 1000 });
    await plan(set, [task("cart")]);
    const request = { request: "r1", account: set.build, holder: "h", kind: "model" as const, microUsd: 1000 };
    await set.store.ledger.reserve(request);
    await set.store.ledger.settle({ request: "r1", microUsd: 1000, provider: "p", end: "complete", estimated: false });
    await set.turn();
    expect(set.look()).toMatchObject([{ type: "attempt", task: "cart", paused: true }]);
    expect(await set.events()).toEqual(expect.arrayContaining(["budget.warned", "build.paused"]));
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "paused", reason: "budget" });
    set.pass(2 * 24 * 3_600_000);
    set.restart();
    await set.turn();
    await set.tell("order.budget", { budgetMicroUsd: 5000 });
    await set.turn();
    expect(set.look()).toMatchObject([{ type: "attempt", task: "cart", paused: false }]);
    expect(await set.status()).toBe("running");
  });

  test("a cancel ends everything", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay")]);
    await set.tell("sandbox.changed", { sandbox: sandboxOf(set.build) });
    await set.tell("order.cancel", {});
    expect(await set.turn()).toEqual({ over: true });
    expect(set.reattached.at(-1)).toEqual([]);
    expect(await set.status()).toBe("cancelled");
    const [sandbox] = await set.store.builds.records(set.build, "sandboxes");
    expect(sandbox).toMatchObject({ status: "destroyed", endedAt: expect.any(Number) });
    expect(await set.turn()).toEqual({ over: true });
  });
});

describe("who drives", () => {
  test("a process that comes new to a build asks for all that should be under way, once", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay", ["cart"])]);
    expect(set.reattached).toEqual([[]]);
    set.restart();
    set.pass(1_800_000);
    await set.turn();
    await set.turn();
    expect(set.reattached).toHaveLength(2);
    expect(set.reattached[1]).toMatchObject([{ type: "attempt", task: "cart", number: 1, respawn: 0, paused: false }]);
    expect(set.look()).toEqual([]);
  });

  /** Turns as a server takes them, once a minute, with an attempt that is heard. */
  async function drive(set: Awaited<ReturnType<typeof begin>>, minutes: number) {
    for (let minute = 0; minute < minutes; minute++) {
      set.pass(60_000);
      set.heard.set("cart#1", set.now());
      await set.turn();
    }
  }

  test.each([
    { what: "two hours later", awayMs: 2 * hourMs, restart: true },
    { what: "two days later", awayMs: 48 * hourMs, restart: true },
    { what: "two days later, having slept", awayMs: 48 * hourMs, restart: false },
  ])("a server that comes back $what ends nothing for that, and time goes on from there", async (gap) => {
    const set = await begin();
    await plan(set, [task("cart")]);
    await set.tell("attempt.heard", { task: "cart", attempt: 1 });
    await drive(set, 30);
    if (gap.restart) set.restart();
    set.pass(gap.awayMs);
    await set.turn();
    await drive(set, 28);
    expect(set.look()).toEqual([]);
    expect(await set.status()).toBe("running");
    await drive(set, 2);
    expect(names(set.look())).toEqual(["end-attempt cart", "attempt cart"]);
    expect((await set.store.builds.state(set.build)).tasks).toMatchObject([
      { details: { failures: [{ error: "timeout: the attempt took too long" }] } },
    ]);
  });

  test("a build that nobody drove for two days has its time still", async () => {
    const set = await begin({ timeoutMs: hourMs });
    set.pass(48 * hourMs);
    await set.turn();
    expect(set.look()).toEqual([{ type: "stage", stage: "draft", round: 1 }]);
    set.restart();
    set.pass(48 * hourMs);
    await set.turn();
    expect(await set.status()).toBe("planning");
    await drive(set, 57);
    expect(await set.status()).toBe("planning");
    await drive(set, 1);
    expect(await set.store.builds.get(set.build)).toMatchObject({ status: "failed", reason: "timeout" });
  });

  test("what could not be begun is asked for again", async () => {
    const set = await begin();
    await plan(set, [task("cart"), task("pay", ["cart"])]);
    set.refuse(new Error("the provider is away"));
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: merged });
    await expect(set.turn()).rejects.toThrow("away");
    set.refuse();
    await set.turn();
    expect(set.reattached.at(-1)).toMatchObject([{ type: "attempt", task: "pay", number: 1 }]);
  });

  test("a build that ended while its end could not be carried out is closed by who comes next", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    set.refuse(new Error("the provider is away"));
    await set.tell("order.cancel", {});
    await expect(set.turn()).rejects.toThrow("away");
    expect(await set.status()).toBe("cancelled");
    set.pass(3_600_000);
    expect(await set.store.leases.expired()).toEqual([set.build]);
    set.refuse();
    expect(await set.turn({ holder: "server-2", generation: 2 })).toEqual({ over: true });
    expect(set.reattached.at(-1)).toEqual([]);
    expect(await set.store.leases.expired()).toEqual([]);
  });

  test("what an earlier generation has left ends without a trace", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    await set.turn({ ...driver, generation: 2 });
    expect(await set.turn()).toEqual({ over: true });
    await set.turn({ ...driver, generation: 2 });
    expect(set.reattached).toHaveLength(1);
  });

  test("a driver whose lease is another's lets go, and changes nothing", async () => {
    const set = await begin();
    await plan(set, [task("cart")]);
    await set.store.leases.take(set.build, { holder: "server-2", generation: 2 }, 60_000);
    await set.tell("attempt.ended", { task: "cart", attempt: 1, respawn: 0, end: merged });
    expect(await set.turn()).toEqual({ over: true });
    expect(await set.tasks()).toEqual({ cart: "assigned" });
  });
});
