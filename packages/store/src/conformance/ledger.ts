import { type BuildId, newId } from "@slipway/contract";
import { type BuildLedger, costDimensions } from "@slipway/engine";
import { expect, test } from "vitest";
import { budgetMicroUsd, drivenBuild, openTestStore } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

export function describeLedger(opened: () => OpenedStore): void {
  const by = { holder: "server-1", kind: "model" } as const;
  const bill = { provider: "anthropic", end: "complete", estimated: false } as const;

  /** A build of 1,000 with a run of 600. */
  async function openRun(ledger: BuildLedger, build: BuildId, run = "run", budget = 600) {
    await ledger.open({ id: run, build, task: "cart", attempt: newId("att"), agent: "lead", budgetMicroUsd: budget });
  }

  test("money is set aside in the run and in its build, and settled once in both", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await openRun(store.ledger, build);
    expect(await store.ledger.reserve({ request: "a", account: "run", ...by, microUsd: 400 })).toBe(true);
    expect(await store.ledger.extend("a", 100)).toBe(true);
    expect(await store.ledger.balance("run")).toEqual({ budgetMicroUsd: 600, spentMicroUsd: 0, reservedMicroUsd: 500 });
    const settled = await Promise.all(
      [1, 2, 3].map(() => store.ledger.settle({ request: "a", microUsd: 300, ...bill })),
    );
    expect(settled.filter(Boolean)).toHaveLength(1);
    const after = { spentMicroUsd: 300, reservedMicroUsd: 0 };
    expect(await store.ledger.balance("run")).toEqual({ budgetMicroUsd: 600, ...after });
    expect(await store.ledger.balance(build)).toEqual({ budgetMicroUsd, ...after });
    expect(await store.ledger.extend("a", 1)).toBe(false);
  });

  test("what the run or the build can not cover is refused, and nothing is taken", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await openRun(store.ledger, build, "small", 600);
    await openRun(store.ledger, build, "large", 2 * budgetMicroUsd);
    expect([await store.ledger.left("small"), await store.ledger.left("large")]).toEqual([600, budgetMicroUsd]);
    expect(await store.ledger.reserve({ request: "a", account: "small", ...by, microUsd: 601 })).toBe(false);
    expect(await store.ledger.reserve({ request: "b", account: "large", ...by, microUsd: budgetMicroUsd + 1 })).toBe(
      false,
    );
    expect(await store.ledger.reserve({ request: "c", account: "large", ...by, microUsd: budgetMicroUsd })).toBe(true);
    expect(await store.ledger.reserve({ request: "d", account: "small", ...by, microUsd: 1 })).toBe(false);
    expect(await store.ledger.left("small")).toBe(0);
    expect(await store.ledger.extend("c", 1)).toBe(false);
    expect(await store.ledger.balance("small")).toMatchObject({ reservedMicroUsd: 0 });
    expect(await store.ledger.balance(build)).toMatchObject({ reservedMicroUsd: budgetMicroUsd });
  });

  test("without an account there is no money", async () => {
    const { store } = opened();
    expect(await store.ledger.reserve({ request: "a", account: "nobody", ...by, microUsd: 0 })).toBe(false);
    expect(await store.ledger.balance("nobody")).toEqual({ budgetMicroUsd: 0, spentMicroUsd: 0, reservedMicroUsd: 0 });
    expect(await store.ledger.left("nobody")).toBe(0);
    expect(await store.ledger.extend("a", 1)).toBe(false);
    expect(await store.ledger.settle({ request: "a", microUsd: 1, ...bill })).toBe(false);
  });

  test("a budget is raised, never lowered, and what was spent past it stays refused", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await openRun(store.ledger, build);
    await store.ledger.reserve({ request: "a", account: "run", ...by, microUsd: 600 });
    await store.ledger.settle({ request: "a", microUsd: 700, ...bill });
    await store.ledger.open({ id: "run", build: null, budgetMicroUsd: 10 });
    expect(await store.ledger.balance("run")).toMatchObject({ budgetMicroUsd: 600, spentMicroUsd: 700 });
    expect(await store.ledger.left("run")).toBe(0);
    expect(await store.ledger.reserve({ request: "b", account: "run", ...by, microUsd: 0 })).toBe(false);
    await store.ledger.open({ id: "run", build: null, budgetMicroUsd: 701 });
    expect(await store.ledger.reserve({ request: "b", account: "run", ...by, microUsd: 1 })).toBe(true);
    // Whose it is was said when it was opened first.
    expect(await store.ledger.balance(build)).toMatchObject({ spentMicroUsd: 700, reservedMicroUsd: 1 });
  });

  test("the same reservation again is the same, another one under its name is refused", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await openRun(store.ledger, build);
    const reservation = { request: "a", account: "run", ...by, microUsd: 10 };
    expect(await store.ledger.reserve(reservation)).toBe(true);
    expect(await store.ledger.reserve(reservation)).toBe(true);
    expect(await store.ledger.balance("run")).toMatchObject({ reservedMicroUsd: 10 });
    const conflict = { code: "idempotency_conflict" };
    await expect(store.ledger.reserve({ ...reservation, microUsd: 11 })).rejects.toMatchObject(conflict);
    await store.ledger.settle({ request: "a", microUsd: 5, ...bill });
    await expect(store.ledger.reserve(reservation)).rejects.toMatchObject(conflict);
  });

  test("what a dead process had reserved is spent at its whole amount, and nobody else's", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await openRun(store.ledger, build);
    await store.ledger.reserve({ request: "a", account: "run", ...by, microUsd: 10 });
    await store.ledger.reserve({ request: "b", account: "run", ...by, microUsd: 20 });
    await store.ledger.reserve({ request: "c", account: "run", ...by, holder: "server-2", microUsd: 40 });
    await store.ledger.settle({ request: "a", microUsd: 5, ...bill });
    expect(await store.ledger.abandon("server-1")).toBe(1);
    expect(await store.ledger.abandon("server-1")).toBe(0);
    expect(await store.ledger.balance("run")).toMatchObject({ spentMicroUsd: 25, reservedMicroUsd: 40 });
  });

  test("compute with terms is open until it is settled, whoever dies", async () => {
    const { store } = opened();
    const { ledger } = store;
    const build = await drivenBuild(store);
    await openRun(ledger, build);
    const terms = { provider: "modal", fromMs: 0, untilMs: 600_000, microUsdPerMs: 0.0661 };
    const compute = { holder: "server-1", kind: "compute", account: "run", terms } as const;
    expect(await ledger.reserve({ ...compute, request: "a:0", microUsd: 100 })).toBe(true);
    expect(await ledger.reserve({ ...compute, request: "b:0", microUsd: 50, sandbox: "sbx_b" })).toBe(true);
    await ledger.reserve({ ...by, request: "c", account: "run", microUsd: 7 });
    const openOf = async () => (await ledger.openCompute()).filter((entry) => entry.build === build);
    expect(await openOf()).toMatchObject([
      { request: "a:0", account: "run", holder: "server-1", sandbox: null, terms, reservedMicroUsd: 100 },
      { request: "b:0", sandbox: "sbx_b", reservedMicroUsd: 50 },
    ]);
    await ledger.place("a:0", "sbx_a");
    expect(await ledger.openCompute("a:")).toMatchObject([{ request: "a:0", sandbox: "sbx_a" }]);
    expect([await ledger.payerOf("sbx_a"), await ledger.payerOf("sbx_c")]).toEqual(["run", undefined]);
    expect(await ledger.abandon("server-1", build)).toBe(1);
    expect(await openOf()).toMatchObject([{ sandbox: "sbx_a" }, { sandbox: "sbx_b" }]);
    expect(await ledger.settle({ request: "a:0", microUsd: 40, ...bill, provider: "modal" })).toBe(true);
    expect(await ledger.settle({ request: "a:0", microUsd: 40, ...bill, provider: "modal" })).toBe(false);
    expect(await openOf()).toMatchObject([{ request: "b:0" }]);
    expect([await ledger.spentOn("sbx_a"), await ledger.spentOn("sbx_b")]).toEqual([40, 0]);
    expect(await ledger.balance(build)).toMatchObject({ spentMicroUsd: 47, reservedMicroUsd: 50 });
    expect(await ledger.costs(build, "provider")).toContainEqual(
      expect.objectContaining({ of: "modal", spentMicroUsd: 40 }),
    );
  });

  test("of a build that another process takes over, only what the dead one had reserved for it is spent", async () => {
    const { store } = opened();
    const { ledger } = store;
    const [build, other] = [await drivenBuild(store), await drivenBuild(store)];
    await openRun(ledger, build);
    await openRun(ledger, other, "other");
    await ledger.reserve({ request: "a", account: "run", ...by, microUsd: 10 });
    await ledger.reserve({ request: "b", account: build, ...by, microUsd: 20 });
    await ledger.reserve({ request: "c", account: "run", ...by, holder: "server-2", microUsd: 40 });
    await ledger.reserve({ request: "d", account: "other", ...by, microUsd: 80 });
    expect(await ledger.abandon("server-1", build)).toBe(2);
    expect(await ledger.abandon("server-1", build)).toBe(0);
    expect(await ledger.balance(build)).toMatchObject({ spentMicroUsd: 30, reservedMicroUsd: 40 });
    expect(await ledger.balance(other)).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 80 });
    // Whoever was taken for dead and is not says nothing new by settling it.
    expect(await ledger.settle({ request: "a", microUsd: 5, ...bill })).toBe(false);
  });

  test("costs add up to the same, whatever they are counted by", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const { ledger } = store;
    await openRun(ledger, build, "one");
    await ledger.open({ id: "two", build, gate: "visual", budgetMicroUsd: 500 });
    const spend = async (request: string, account: string, microUsd: number, provider: string) => {
      await ledger.reserve({ request, account, ...by, microUsd });
      await ledger.settle({ request, microUsd, ...bill, provider });
    };
    await spend("a", "one", 10, "anthropic");
    await spend("b", "one", 20, "openai");
    await spend("c", "two", 40, "openai");
    await spend("d", build, 80, "local");
    await ledger.reserve({ request: "e", account: "two", ...by, microUsd: 7 });
    for (const dimension of costDimensions) {
      const costs = await ledger.costs(build, dimension);
      const sum = (field: "spentMicroUsd" | "reservedMicroUsd") =>
        costs.reduce((total, cost) => total + cost[field], 0);
      expect([sum("spentMicroUsd"), sum("reservedMicroUsd")]).toEqual([150, 7]);
    }
    expect(await ledger.costs(build, "gate")).toEqual(
      expect.arrayContaining([
        { of: "visual", spentMicroUsd: 40, reservedMicroUsd: 7, requests: 2 },
        { of: null, spentMicroUsd: 110, reservedMicroUsd: 0, requests: 3 },
      ]),
    );
    const byProvider = new Map((await ledger.costs(build, "provider")).map((cost) => [cost.of, cost.spentMicroUsd]));
    expect(Object.fromEntries(byProvider)).toEqual({ anthropic: 10, openai: 60, local: 80, null: 0 });
    expect((await ledger.balance(build)).spentMicroUsd).toBe(150);
  });

  test("two servers that reserve at once never set aside more than there is", async () => {
    const { store, url } = opened();
    const build = await drivenBuild(store);
    await using second = await openTestStore(url);
    const runs = ["one", "two"];
    for (const run of runs) await openRun(store.ledger, build, run, 2 * budgetMicroUsd);
    const share = budgetMicroUsd / 10;
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { ledger } = index % 2 === 0 ? store : second.store;
        const account = runs[Math.floor(index / 2) % 2] as string;
        return await ledger.reserve({ request: `r${index}`, account, ...by, microUsd: share });
      }),
    );
    expect(answers.filter(Boolean)).toHaveLength(10);
    expect(await store.ledger.balance(build)).toMatchObject({ reservedMicroUsd: budgetMicroUsd });
    const settled = answers.flatMap((granted, index) => (granted ? [`r${index}`] : []));
    await Promise.all(settled.map((request) => second.store.ledger.settle({ request, microUsd: 1, ...bill })));
    expect(await store.ledger.balance(build)).toEqual({ budgetMicroUsd, spentMicroUsd: 10, reservedMicroUsd: 0 });
  });

  test.each([-1, 0.5, Number.NaN])("an amount of %d is refused", async (microUsd) => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const wrong = { code: "invalid_request" };
    await expect(store.ledger.reserve({ request: "a", account: build, ...by, microUsd })).rejects.toMatchObject(wrong);
    await expect(store.ledger.extend("a", microUsd)).rejects.toMatchObject(wrong);
    await expect(store.ledger.settle({ request: "a", microUsd, ...bill })).rejects.toMatchObject(wrong);
  });
}
