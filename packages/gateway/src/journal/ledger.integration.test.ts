import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId, type RunId } from "@slipway/contract";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Ledger, Settlement } from "../ports/ports.ts";
import { createMemoryLedger, type OpenLedger, openLedger } from "./ledger.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-ledger-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const run = newId("run");
const file = () => join(directory, "ledger.jsonl");

function settlement(request: string, microUsd: number, owner: RunId = run): Settlement {
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
  return { request, run: owner, role: "build", model: "a/b", usage, microUsd, estimated: false, end: "complete" };
}

test("what was spent and reserved is there after a restart", async () => {
  {
    await using ledger = await openLedger(directory);
    await ledger.open(run, 1000);
    expect(await ledger.reserve({ request: "a", run, microUsd: 400 })).toBe(true);
    await ledger.settle(settlement("a", 300));
  }
  await using ledger = await openLedger(directory);
  expect(await ledger.balance(run)).toEqual({ budgetMicroUsd: 1000, spentMicroUsd: 300, reservedMicroUsd: 0 });
});

test("an open reservation of a dead gateway is lost at its whole amount, once", async () => {
  {
    await using ledger = await openLedger(directory);
    await ledger.open(run, 1000);
    await ledger.reserve({ request: "a", run, microUsd: 400 });
    await ledger.extend("a", 100);
  }
  for (let restart = 0; restart < 3; restart++) {
    await using ledger = await openLedger(directory);
    expect(await ledger.balance(run)).toEqual({ budgetMicroUsd: 1000, spentMicroUsd: 500, reservedMicroUsd: 0 });
    await ledger.settle(settlement("a", 1));
    expect((await ledger.balance(run)).spentMicroUsd).toBe(500);
  }
  const lost = readFileSync(file(), "utf8")
    .split("\n")
    .filter((line) => line.includes('"lost"'));
  expect(lost).toHaveLength(1);
});

test("a torn last line is cut off", async () => {
  {
    await using ledger = await openLedger(directory);
    await ledger.open(run, 1000);
  }
  appendFileSync(file(), '{"type":"reserve","request":"x","ru');
  {
    await using ledger = await openLedger(directory);
    expect(await ledger.balance(run)).toMatchObject({ budgetMicroUsd: 1000, reservedMicroUsd: 0 });
    await ledger.open(run, 2000);
  }
  await using ledger = await openLedger(directory);
  expect(await ledger.balance(run)).toMatchObject({ budgetMicroUsd: 2000 });
});

test("a damaged line in the middle is not passed over", async () => {
  appendFileSync(file(), '{"type":"open"}\n{"type":"open"}\n');
  await expect(openLedger(directory)).rejects.toMatchObject({ code: "internal" });
  // The lock is free again.
  rmSync(file());
  await using ledger = await openLedger(directory);
  expect(await ledger.balance(run)).toMatchObject({ budgetMicroUsd: 0 });
});

test("a second holder of the same directory is refused", async () => {
  await using held = await openLedger(directory);
  await held.open(run, 1);
  await expect(openLedger(directory)).rejects.toMatchObject({ code: "provider_unavailable" });
});

test("a process that is killed leaves all that it was told is kept", async () => {
  const program = new URL("ledger-fixture.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, directory, run], { stdio: ["ignore", "pipe", "inherit"] });
  let told = "";
  child.stdout.setEncoding("utf8");
  for await (const chunk of child.stdout) {
    told += chunk as string;
    if (told.split("\n").length > 200) child.kill("SIGKILL");
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  const settled = told.split("\n").slice(0, -1).length;
  await using ledger = await openLedger(directory);
  const { spentMicroUsd, reservedMicroUsd } = await ledger.balance(run);
  expect(reservedMicroUsd).toBe(0);
  // Each request costs 10, and at most one more was under way, settled but not told or lost at its 15.
  expect(spentMicroUsd).toBeGreaterThanOrEqual(settled * 10);
  expect(spentMicroUsd - settled * 10).toBeLessThanOrEqual(15);
});

type Step =
  | { readonly type: "reserve" | "extend" | "settle"; readonly request: number; readonly amount: number }
  | { readonly type: "crash" };

const steps = fc.array(
  fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({
        type: fc.constantFrom("reserve", "extend", "settle"),
        request: fc.nat(9),
        amount: fc.nat(60),
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("crash" as const) }) },
  ) as fc.Arbitrary<Step>,
  { maxLength: 60 },
);

test("no order of requests and crashes reserves past the budget or bills a request twice", async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 200 }), async (plan, budget) => {
      const place = mkdtempSync(join(tmpdir(), "slipway-ledger-"));
      try {
        await holds(plan, budget, place);
      } finally {
        rmSync(place, { recursive: true });
      }
    }),
    { numRuns: 150 },
  );
});

/** Compares the ledger with the plainest books there can be: what each request holds and what it cost. */
async function holds(plan: readonly Step[], budget: number, place: string): Promise<void> {
  let ledger: OpenLedger = await openLedger(place);
  await ledger.open(run, budget);
  const held = new Map<string, number>();
  const billed = new Map<string, number>();
  const sum = (amounts: Iterable<number>) => [...amounts].reduce((total, amount) => total + amount, 0);
  const left = () => budget - sum(held.values()) - sum(billed.values());
  for (const step of plan) {
    if (step.type === "crash") {
      await ledger[Symbol.asyncDispose]();
      ledger = await openLedger(place);
      for (const [request, amount] of held) billed.set(request, amount);
      held.clear();
      continue;
    }
    const request = `request-${step.request}`;
    if (step.type === "reserve" && !held.has(request) && !billed.has(request)) {
      const fits = step.amount <= left();
      expect(await ledger.reserve({ request, run, microUsd: step.amount })).toBe(fits);
      if (fits) held.set(request, step.amount);
    }
    if (step.type === "extend") {
      const fits = held.has(request) && step.amount <= left();
      expect(await ledger.extend(request, step.amount)).toBe(fits);
      if (fits) held.set(request, (held.get(request) ?? 0) + step.amount);
    }
    if (step.type === "settle") {
      await ledger.settle(settlement(request, step.amount));
      if (held.delete(request)) billed.set(request, step.amount);
    }
    expect(await ledger.balance(run)).toEqual({
      budgetMicroUsd: budget,
      spentMicroUsd: sum(billed.values()),
      reservedMicroUsd: sum(held.values()),
    });
  }
  await ledger[Symbol.asyncDispose]();
}

test("books in memory keep the same rules", async () => {
  const ledger: Ledger = createMemoryLedger();
  const other = newId("run");
  await ledger.open(run, 100);
  await ledger.open(run, 50);
  expect(await ledger.reserve({ request: "a", run, microUsd: 100 })).toBe(true);
  expect(await ledger.reserve({ request: "b", run, microUsd: 1 })).toBe(false);
  expect(await ledger.reserve({ request: "c", run: other, microUsd: 1 })).toBe(false);
  await ledger.settle(settlement("a", 10));
  await ledger.settle(settlement("a", 10));
  expect(await ledger.balance(run)).toEqual({ budgetMicroUsd: 100, spentMicroUsd: 10, reservedMicroUsd: 0 });
});
