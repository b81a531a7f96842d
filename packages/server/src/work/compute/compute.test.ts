import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { computeCost, computePriceSchema, computeRate, newId, SlipwayError } from "@slipway/contract";
import type { BuildLedger } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { createFakeProvider } from "@slipway/sandbox/testing/provider";
import { openDatabase, openStore } from "@slipway/store";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { Slices } from "./decide.ts";
import { type PayParts, payForSandboxes } from "./pay.ts";
import { createClockedProvider } from "./testing.ts";

const price = computePriceSchema.parse({ core: 0.00003942, cpusPerCore: 2, memoryGib: 0.00000667, gpus: { T4: 0.01 } });
const rate = computeRate(price, { cpu: 2, memoryMb: 4096 }) ?? 0;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Tests look when they say so. */
const slices: Slices = { firstMs: 10 * minuteMs, aheadMs: 2 * hourMs, tickMs: 24 * hourMs };

async function open({ budgetMicroUsd = 100_000_000 } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "slipway-compute-"));
  let nowMs = 1_000_000;
  const clock = { now: () => nowMs };
  const database = openDatabase({ url: `file:${join(directory, "slipway.db")}` });
  onTestFinished(async () => {
    await database[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  const store = await openStore(database, clock);
  const build = newId("bld");
  const named = { account: "ada", project: "shop", mode: "new", request: "A shop" } as const;
  await store.builds.create({ id: build, ...named }, budgetMicroUsd, { type: "build.created" });
  const world = createClockedProvider(clock);
  const refusals = new Set<string>();
  const warnings: string[] = [];
  const parts = (change: Partial<PayParts> = {}): PayParts => ({
    price,
    ledger: store.ledger,
    holder: "server-1",
    slices,
    clock,
    refused: ({ key }) => void refusals.add(key),
    warn: (message) => void warnings.push(message),
    ...change,
  });
  /** Lets time pass as a server sees it that looks every minute. */
  const pass = async (ms: number, paid: { look(): Promise<void> }) => {
    for (const until = nowMs + ms; nowMs < until; ) {
      nowMs = Math.min(until, nowMs + minuteMs);
      await paid.look();
    }
  };
  const truth = () => [...world.ranMs().values()].reduce((sum, ms) => sum + computeCost(rate, ms), 0);
  return {
    build,
    labels: { build, task: "cart", attempt: newId("att"), purpose: "attempt" },
    ledger: store.ledger,
    world,
    refusals,
    warnings,
    parts,
    pass,
    truth,
    advance(ms: number) {
      nowMs += ms;
    },
    now: () => nowMs,
    balance: () => store.ledger.balance(build),
    /** No sandbox may live longer than what is reserved for it. */
    async expectPaidLives() {
      const open = await store.ledger.openCompute();
      for (const { id, state, expiresAt } of world.infos()) {
        if (state !== "running") continue;
        const own = open.filter(({ sandbox }) => sandbox === id).map(({ terms }) => terms.untilMs);
        expect(world.ranMs().get(id) ?? 0).toBeLessThanOrEqual(Math.max(...own));
        expect(expiresAt - nowMs).toBeLessThanOrEqual(Math.max(...own) - (world.ranMs().get(id) ?? 0));
      }
    },
  };
}

test("with a free provider nothing is written, and it is the provider itself", async () => {
  const { parts, ledger } = await open();
  const provider = createFakeProvider();
  await using paid = payForSandboxes(provider, parts({ price: computePriceSchema.parse({ core: 0, memoryGib: 0 }) }));
  expect(paid.provider).toBe(provider);
  await (await paid.provider.create({})).destroy();
  await paid.look();
  expect(await ledger.openCompute()).toEqual([]);
});

test("a sandbox's time is reserved before it starts, and settled to the micro-USD for who has used it", async () => {
  const { parts, world, ledger, build, labels, balance, advance } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels: { ...labels, gate: "tests" } });
  expect(await balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: computeCost(rate, slices.firstMs) });
  advance(61_234);
  await sandbox.destroy();
  const spentMicroUsd = computeCost(rate, 61_234);
  expect(await balance()).toMatchObject({ spentMicroUsd, reservedMicroUsd: 0 });
  expect(await ledger.spentOn(sandbox.id)).toBe(spentMicroUsd);
  for (const [dimension, of] of [
    ["provider", "modal"],
    ["task", "cart"],
    ["attempt", labels.attempt],
    ["gate", "tests"],
  ] as const)
    expect(await ledger.costs(build, dimension)).toEqual([{ of, spentMicroUsd, reservedMicroUsd: 0, requests: 1 }]);
});

test("a sandbox that works for a day lives no longer than is paid, and costs what it ran", async () => {
  const { parts, world, labels, balance, pass, truth, expectPaidLives, warnings } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels, lifetimeMs: 24 * hourMs, onEnd: "stop" });
  for (let hour = 0; hour < 23; hour++) {
    await pass(hourMs, paid);
    await expectPaidLives();
  }
  expect((await sandbox.info()).state).toBe("running");
  // What is used is spent, not only reserved.
  expect((await balance()).spentMicroUsd).toBeGreaterThan(0.8 * truth());
  await pass(2 * hourMs, paid);
  expect((await sandbox.info()).state).toBe("stopped");
  expect(world.ranMs().get(sandbox.id)).toBeLessThanOrEqual(24 * hourMs);
  expect(world.ranMs().get(sandbox.id)).toBeGreaterThan(24 * hourMs - minuteMs);
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
  expect(warnings).toEqual([]);
});

test("a sandbox that rests costs nothing, and its next life is paid for again", async () => {
  const { parts, world, labels, balance, pass, truth, advance } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const { id } = await paid.provider.create({ labels, lifetimeMs: 24 * hourMs, onEnd: "stop" });
  await pass(hourMs + 7, paid);
  const sandbox = await paid.provider.get(id);
  await sandbox.stop();
  const { spentMicroUsd } = await balance();
  expect(spentMicroUsd).toBe(computeCost(rate, hourMs + 7));
  await pass(5 * hourMs, paid);
  await sandbox.start();
  advance(1);
  await sandbox.stop();
  // Nothing has run, and the same start is paid for again.
  await sandbox.start();
  await sandbox.stop();
  await sandbox.start();
  await pass(hourMs, paid);
  await sandbox.destroy();
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
  expect(world.ranMs().get(id)).toBe(2 * hourMs + 8);
});

test("a sandbox that the provider puts to sleep and wakes by itself is paid for all the time that it runs", async () => {
  const { parts, world, labels, balance, pass, truth, advance } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const { id } = await paid.provider.create({ labels, lifetimeMs: 24 * hourMs, onEnd: "stop" });
  const unpaid = await world.provider.get(id);
  await pass(20 * minuteMs, paid);
  await unpaid.stop();
  await pass(20 * minuteMs, paid);
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
  await unpaid.start();
  advance(12_345);
  await pass(20 * minuteMs, paid);
  await (await paid.provider.get(id)).destroy();
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
});

test("a snapshot is paid for when it is deleted, once, by whoever paid for its sandbox", async () => {
  const { parts, world, labels, balance, advance, ledger, build } = await open();
  const priced = computePriceSchema.parse({ ...price, snapshotGibMonth: 0.3 });
  await using paid = payForSandboxes(world.provider, parts({ price: priced }));
  const sandbox = await paid.provider.create({ labels });
  const { id } = await sandbox.snapshot();
  await sandbox.destroy();
  advance(15 * 24 * hourMs);
  await paid.provider.snapshots.delete(id);
  await expect(paid.provider.snapshots.delete(id)).rejects.toMatchObject({ code: "snapshot_not_found" });
  expect(await balance()).toMatchObject({ spentMicroUsd: 150_000, reservedMicroUsd: 0 });
  expect(await ledger.costs(build, "attempt")).toMatchObject([{ of: labels.attempt, spentMicroUsd: 150_000 }]);
});

test("a fork pays for itself", async () => {
  const { parts, world, labels, balance, advance, truth } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels });
  const fork = await sandbox.fork();
  const [one, other] = [await sandbox.info(), await fork.info()];
  expect(one.labels["payment"]).not.toBe(other.labels["payment"]);
  expect(other.labels).toMatchObject(labels);
  advance(1234);
  await sandbox.destroy();
  advance(1234);
  await fork.destroy();
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
});

test("a GPU is paid for, also in a fork", async () => {
  const { parts, world, labels, balance, advance } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels, gpu: "T4:2" });
  const fork = await sandbox.fork({ cpu: 4 });
  advance(hourMs / 60);
  await sandbox.destroy();
  await fork.destroy();
  const [one, other] = [2, 4].map((cpu) => computeRate(price, { cpu, memoryMb: 4096, gpu: "T4:2" }) ?? 0);
  const spentMicroUsd = computeCost(one ?? 0, minuteMs) + computeCost(other ?? 0, minuteMs);
  expect(spentMicroUsd).toBeGreaterThan(2 * 2 * 60 * 10_000);
  expect(await balance()).toMatchObject({ spentMicroUsd, reservedMicroUsd: 0 });
});

test("without money nothing starts, and what runs ends with what is reserved", async () => {
  const budgetMicroUsd = computeCost(rate, hourMs);
  const { parts, world, labels, refusals, balance, pass, truth } = await open({ budgetMicroUsd });
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels, lifetimeMs: 24 * hourMs, onEnd: "stop" });
  await pass(30 * minuteMs, paid);
  expect(refusals.size).toBe(0);
  await pass(hourMs, paid);
  expect((await sandbox.info()).state).toBe("stopped");
  // Told once, while there was time to end in order.
  expect(refusals.size).toBe(1);
  expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
  expect(truth()).toBeLessThanOrEqual(budgetMicroUsd);
  expect(truth()).toBeGreaterThan(0.8 * budgetMicroUsd);
  await expect(sandbox.start()).rejects.toMatchObject({ code: "budget_exhausted" });
  await expect(paid.provider.create({ labels })).rejects.toMatchObject({
    code: "budget_exhausted",
    message: expect.stringMatching(/the build has 0\.\d+ USD left, and a sandbox of modal needs 0\.0397 USD to begin/),
  });
  expect(world.infos()).toHaveLength(1);
});

test("a keep-alive is paid for, or refused", async () => {
  const budgetMicroUsd = computeCost(rate, hourMs);
  const { parts, world, labels, balance } = await open({ budgetMicroUsd });
  await using paid = payForSandboxes(world.provider, parts());
  const sandbox = await paid.provider.create({ labels });
  const { expiresAt } = await sandbox.keepAlive(30 * minuteMs);
  expect(expiresAt).toBe((await sandbox.info()).expiresAt);
  expect(await balance()).toMatchObject({ reservedMicroUsd: computeCost(rate, 30 * minuteMs) });
  await expect(sandbox.keepAlive(2 * hourMs)).rejects.toMatchObject({ code: "budget_exhausted" });
  expect((await sandbox.info()).expiresAt).toBe(expiresAt);
});

test("what can not be made costs nothing", async () => {
  const { parts, world, labels, balance } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  await expect(paid.provider.create({ labels, gpu: "H100" })).rejects.toMatchObject({
    code: "unknown_price",
    message: expect.stringContaining("known are T4"),
  });
  await expect(paid.provider.create({ labels, lifetimeMs: -1 })).rejects.toThrow();
  world.failCreates(new SlipwayError("image_build_failed", "no"));
  await expect(paid.provider.create({ labels })).rejects.toMatchObject({ code: "image_build_failed" });
  expect(await balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("a provider that may have made it is asked later", async () => {
  const { parts, world, labels, balance, pass } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  world.failCreates(new SlipwayError("provider_unavailable", "away"));
  await expect(paid.provider.create({ labels })).rejects.toMatchObject({ code: "provider_unavailable" });
  await paid.look();
  expect(await balance()).toMatchObject({ reservedMicroUsd: computeCost(rate, slices.firstMs) });
  await pass(2 * minuteMs, paid);
  expect(await balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("where nobody can say what ran, what was reserved is spent", async () => {
  const { parts, world, labels, balance, build, ledger, pass } = await open();
  await using paid = payForSandboxes(world.provider, parts());
  const terms = { provider: "modal", fromMs: 0, untilMs: slices.firstMs, microUsdPerMs: rate };
  await (await paid.provider.create({ labels })).destroy();
  const entry = { account: build, kind: "compute", microUsd: 100, terms } as const;
  await ledger.reserve({ ...entry, request: "a:1", holder: "server-1" });
  await ledger.reserve({ ...entry, request: "b:1", holder: "server-2" });
  // The first was reserved by a server that was away until any sandbox of it had ended.
  const { provider } = world;
  const silent = { ...provider, list: async () => [], async *events() {} } as SandboxProvider;
  await pass(slices.firstMs, { look: async () => {} });
  await using next = payForSandboxes(silent, parts());
  await next.look();
  expect(await balance()).toMatchObject({ spentMicroUsd: 100, reservedMicroUsd: 100 });
  // The other server's may still be asked for by itself.
  await pass(25 * hourMs, { look: async () => {} });
  await next.look();
  expect(await balance()).toMatchObject({ spentMicroUsd: 200, reservedMicroUsd: 0 });
});

type Call = (...given: never[]) => unknown;

/** Calls to `target` count; the one with number `at` is the last thing that its process does. */
function mortal<T extends object>(target: T, count: { n: number; readonly at: number; die(): void }): T {
  return new Proxy(target, {
    get(of, name) {
      const found = Reflect.get(of, name) as unknown;
      if (typeof found !== "function" || name === "events") return found;
      return async (...given: unknown[]) => {
        const never = new Promise<never>(() => {});
        const step = () => ++count.n === count.at;
        if (count.n >= count.at) return await never;
        if (step()) {
          count.die();
          return await never;
        }
        const done = await (found as Call).apply(of, given as never[]);
        if (count.n >= count.at) return await never;
        if (step()) {
          count.die();
          return await never;
        }
        const isSandbox = typeof done === "object" && done !== null && "destroy" in done;
        return isSandbox ? mortal(done as object, count) : done;
      };
    },
  });
}

async function liveAndDie(dieAt: number): Promise<{ readonly calls: number }> {
  const { parts, world, ledger, labels, balance, pass, truth, expectPaidLives, advance } = await open();
  const died = Promise.withResolvers<void>();
  const count = { n: 0, at: dieAt, die: died.resolve };
  const first = payForSandboxes(
    mortal(world.provider, count) as SandboxProvider,
    parts({ ledger: mortal(ledger, count) as BuildLedger }),
  );
  const script = async () => {
    const sandbox = await first.provider.create({ labels, lifetimeMs: 24 * hourMs, onEnd: "stop" });
    await using gate = await first.provider.create({ labels: { ...labels, gate: "tests" }, onEnd: "destroy" });
    advance(4 * minuteMs + 321);
    await first.look();
    advance(4 * minuteMs + 321);
    await first.look();
    await gate.keepAlive(30 * minuteMs);
    await sandbox.stop();
    advance(minuteMs);
    await (await first.provider.get(sandbox.id)).start();
    advance(minuteMs);
    await (await sandbox.fork()).destroy();
  };
  await Promise.race([script(), died.promise]);
  const calls = count.n;
  count.n = Number.MAX_SAFE_INTEGER;
  advance(3 * minuteMs + 99);
  await using next = payForSandboxes(world.provider, parts());
  await next.look();
  await pass(3 * minuteMs, next);
  await expectPaidLives();
  for (const { id, state } of world.infos()) {
    const sandbox = await next.provider.get(id);
    if (state === "stopped") await sandbox.start();
    advance(777);
    await sandbox.destroy();
  }
  await pass(2 * minuteMs, next);
  expect([dieAt, await balance()]).toEqual([
    dieAt,
    expect.objectContaining({ spentMicroUsd: truth(), reservedMicroUsd: 0 }),
  ]);
  return { calls };
}

test("a server killed between any two steps leaves a ledger that equals what ran", { timeout: 300_000 }, async () => {
  const { calls } = await liveAndDie(Number.MAX_SAFE_INTEGER - 1);
  expect(calls).toBeGreaterThan(60);
  for (let dieAt = 1; dieAt <= calls; dieAt++) await liveAndDie(dieAt);
});

test("whatever is done with sandboxes, the ledger equals what ran and no life is unpaid", {
  timeout: 300_000,
}, async () => {
  const step = fc.record({
    what: fc.constantFrom("create", "stop", "start", "destroy", "fork", "wait", "restart" as const),
    which: fc.nat(5),
    ms: fc.integer({ min: 0, max: 3 * hourMs }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const { parts, world, labels, balance, pass, truth, expectPaidLives } = await open();
      let paid = payForSandboxes(world.provider, parts());
      for (const { what, which, ms } of steps) {
        const infos = world.infos();
        const picked = infos[which % Math.max(1, infos.length)];
        const sandbox = picked && (await paid.provider.get(picked.id));
        if (what === "create") await paid.provider.create({ labels, lifetimeMs: 6 * hourMs, onEnd: "stop" });
        else if (what === "restart") {
          await paid[Symbol.asyncDispose]();
          paid = payForSandboxes(world.provider, parts());
        } else if (what === "fork") await sandbox?.fork();
        else if (what !== "wait") await sandbox?.[what]();
        await pass(ms, paid);
        await expectPaidLives();
      }
      for (const { id } of world.infos()) await (await paid.provider.get(id)).destroy();
      await paid.look();
      expect(await balance()).toMatchObject({ spentMicroUsd: truth(), reservedMicroUsd: 0 });
      await paid[Symbol.asyncDispose]();
    }),
    { numRuns: 12 },
  );
});
