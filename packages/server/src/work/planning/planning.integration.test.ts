import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { compiledChecksSchema } from "@slipway/contract";
import { report } from "@slipway/engine";
import { planner, type ScriptedProgram, type Turn } from "@slipway/gateway/scripted";
import { describe, expect, onTestFinished, test } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { butFor, questions, spent } from "./testing.ts";

const fixture = fileURLToPath(new URL("crash-fixture.ts", import.meta.url));

test("a request becomes a locked intent, its checks and a plan, each asked for once and paid from the build's budget", async () => {
  await using site = await openWorld({ model: planner, planning: {} });
  const { store, build } = site;
  expect(await site.drive()).toMatchObject({ status: "paused", reason: "user" });
  expect(questions(site)).toEqual(["intent", "checks", "plan"]);
  const [intent] = await store.builds.records(build, "intents");
  expect(intent).toMatchObject({ hash: expect.stringMatching(/^sha256:/), intent: { start: { mode: "new" } } });
  const checks = await store.builds.records(build, "checks");
  const [plan] = await store.builds.records(build, "plans");
  expect(plan?.tasks.length).toBeGreaterThanOrEqual(6);
  // What proves the intent is in the checks alone.
  expect(JSON.stringify(checks)).toContain("Proof of ");
  for (const record of [intent, plan]) expect(JSON.stringify(record)).not.toContain("Proof of ");
  for (const { request } of site.asked) expect(JSON.stringify(request.messages)).not.toContain("Proof of ");

  const balance = await store.ledger.balance(build);
  expect(site.lines).toHaveLength(3);
  expect(balance).toMatchObject({ spentMicroUsd: spent(site), reservedMicroUsd: 0 });
  expect(balance.spentMicroUsd).toBeGreaterThan(0);
  expect(await store.ledger.costs(build, "agent")).toMatchObject([{ of: "planner", requests: 3, ...money(balance) }]);
  expect(await store.ledger.costs(build, "provider")).toMatchObject([{ of: "scripted", ...money(balance) }]);
  expect(site.defects).toEqual([]);
});

const money = ({ spentMicroUsd }: { spentMicroUsd: number }) => ({ spentMicroUsd });

test("a plan is cut as its build is set to, and so is one for what is left", async () => {
  await using site = await openWorld({ model: planner, planning: { partition: "component" } });
  await site.drive();
  const build = await site.store.builds.get(site.build);
  await site.planning.carryOut(build, [{ type: "plan-remaining", round: 1, unsatisfied: ["kept-entries"] }]);
  await site.rung();
  const plans = site.asked.filter((request) => JSON.stringify(request).includes("You split the contract"));
  expect(plans).toHaveLength(2);
  for (const request of plans) expect(JSON.stringify(request)).toContain("Cut the app by component:");
});

test("what the user edits before the lock is what is locked, proven and planned", async () => {
  await using site = await openWorld({ model: planner, planning: { hold: "intent" } });
  const { store, build } = site;
  await site.turn();
  await site.rung();
  await site.turn();
  const [drafted] = await site.reports("intent.drafted");
  const { open } = drafted as { open: { status: "open"; intent: { criteria: { id: string }[] } } };
  const added = { id: "dark-mode", kind: "visual", statement: "There is a dark mode." } as const;
  const edited = { ...open, intent: { ...open.intent, criteria: [...open.intent.criteria, added] } };
  await store.events.report(build, [report("intent.edited", null, { open: edited } as never)]);
  await store.events.report(build, [report("intent.released", null, {})]);
  for (let stages = 0; stages < 2; stages++) {
    await site.turn();
    await site.rung();
  }
  await site.turn();
  expect((await store.builds.records(build, "checks")).map(({ criterion }) => criterion)).toContain("dark-mode");
  const [plan] = await store.builds.records(build, "plans");
  expect(plan?.tasks.flatMap(({ criteria }) => criteria)).toContain("dark-mode");
});

describe("after a crash", () => {
  test.each(["intent", "checks", "plan"] as const)(
    "in the middle of the question for the %s, only that one is asked again",
    async (question) => {
      const gate = Promise.withResolvers<void>();
      let isFirst = true;
      const program = butFor(question, async (turn) => {
        if (!isFirst) return turn;
        isFirst = false;
        gate.resolve();
        return { fault: "hang" };
      });
      await using site = await openWorld({ model: program, planning: {} });
      await site.drive(gate.promise);
      await site.restart();
      expect(await site.drive()).toMatchObject({ status: "paused" });
      const once = ["intent", "checks", "plan"].flatMap((one) => (one === question ? [one, one] : [one]));
      expect(questions(site)).toEqual(once);
      // Nobody waits for the gateway to notice that an answer is no longer waited for.
      await expect.poll(() => site.lines).toHaveLength(once.length);
      expect(await site.store.ledger.balance(site.build)).toMatchObject({
        spentMicroUsd: spent(site),
        reservedMicroUsd: 0,
      });
    },
  );

  test("what was reported and not yet taken in is not paid for again", async () => {
    await using site = await openWorld({ model: planner, planning: {} });
    for (let stages = 0; stages < 3; stages++) {
      await site.turn();
      await site.rung();
      await site.restart();
    }
    expect(await site.drive()).toMatchObject({ status: "paused" });
    expect(questions(site)).toEqual(["intent", "checks", "plan"]);
    for (const type of ["intent.drafted", "intent.locked", "plan.made"]) {
      expect(await site.reports(type), type).toHaveLength(1);
    }
  });
});

test.each(["checks", "plan"] as const)(
  "kill -9 in the middle of the %s loses no stage that was done",
  async (question) => {
    const child = spawn(process.execPath, [fixture, question], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(createInterface(child.stdout), "line");
    child.kill("SIGKILL");
    await once(child, "exit");
    const { directory, build } = JSON.parse(line);
    onTestFinished(() => rm(directory, { recursive: true }));
    await using site = await openWorld({ directory, model: planner, planning: { id: build } });
    expect(await site.drive()).toMatchObject({ status: "paused", reason: "user" });
    expect(questions(site)).toEqual(question === "plan" ? ["plan"] : ["checks", "plan"]);
    const [costs] = await site.store.ledger.costs(site.build, "agent");
    // The one that was cut short may have been paid for: it counts as a whole.
    expect(costs).toMatchObject({ requests: 4, reservedMicroUsd: 0 });
    expect(await site.store.ledger.balance(site.build)).toMatchObject({ spentMicroUsd: costs?.spentMicroUsd });
    const events = await site.store.events.read(site.build, 0);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  },
);

test("the same item again, while it is under way and after it, asks nothing", async () => {
  const gate = Promise.withResolvers<void>();
  await using site = await openWorld({
    model: butFor("intent", async (turn) => {
      await gate.promise;
      return turn;
    }),
    planning: {},
  });
  const item = { type: "stage", stage: "draft", round: 1 } as const;
  await site.turn();
  const build = await site.store.builds.get(site.build);
  await site.planning.carryOut(build, [item, item]);
  await site.planning.reattach(build, [item]);
  gate.resolve();
  await site.rung();
  await site.planning.carryOut(build, [item]);
  await site.rung();
  expect(questions(site)).toEqual(["intent"]);
  expect(await site.reports("intent.drafted")).toHaveLength(1);
});

test("a cancelled build's stage ends, and nothing more is spent or reported", async () => {
  const gate = Promise.withResolvers<void>();
  const program = butFor("checks", () => {
    gate.resolve();
    return { text: "{", paceMs: 10_000 };
  });
  await using site = await openWorld({ model: program, planning: {} });
  await site.drive(gate.promise);
  await site.store.events.report(site.build, [report("order.cancel", null, {})]);
  await site.turn();
  expect(await site.store.builds.get(site.build)).toMatchObject({ status: "cancelled" });
  // The gateway's line tells that the answer is no longer waited for.
  await expect.poll(() => site.lines.length).toBe(2);
  expect(await site.reports("intent.locked")).toEqual([]);
  expect(await site.reports("stage.failed")).toEqual([]);
  expect((await site.store.ledger.balance(site.build)).reservedMicroUsd).toBe(0);
  await site.planning[Symbol.asyncDispose]();
  expect(site.defects).toEqual([]);
});

test("what is not asked for after a restart is ended", async () => {
  const gate = Promise.withResolvers<void>();
  const program = butFor("intent", () => {
    gate.resolve();
    return { fault: "hang" };
  });
  await using site = await openWorld({ model: program, planning: {} });
  await site.turn();
  await gate.promise;
  await site.planning.reattach(await site.store.builds.get(site.build), []);
  await expect.poll(() => site.lines.length).toBe(1);
  expect(await site.reports("stage.failed")).toEqual([]);
});

describe("a plan for what is left", () => {
  async function planned(site: WorldWith<"planning">) {
    expect(await site.drive()).toMatchObject({ status: "paused" });
    return await site.store.builds.get(site.build);
  }

  test("has tasks of its own for what is not satisfied, and the model is told what was seen of it", async () => {
    const asked: string[] = [];
    const program: ScriptedProgram = (request) => {
      asked.push(request.lastPrompt);
      return planner(request);
    };
    await using site = await openWorld({ model: program, planning: {} });
    const build = await planned(site);
    const evidence = [{ id: "kept-entries", satisfied: false, text: "GET /api/entries was answered with []." }];
    const check = { round: 1, unsatisfied: ["kept-entries"], evidence };
    await site.store.events.report(site.build, [report("satisfaction.checked", "satisfaction.checked:1", check)]);
    await site.planning.carryOut(build, [{ type: "plan-remaining", round: 1, unsatisfied: ["kept-entries"] }]);
    await site.rung();
    const [told] = await site.reports("remaining.planned");
    expect(told).toMatchObject({ round: 1, tasks: [{ criteria: ["kept-entries"], id: "make-kept-entries-2" }] });
    expect(asked.at(-1)).toContain("kept-entries: GET /api/entries was answered with [].");
    expect(await site.store.ledger.balance(site.build)).toMatchObject({ spentMicroUsd: spent(site) });
  });

  test("that no model can make is told, and one without money waits for it", async () => {
    let turn: Turn | undefined;
    const program: ScriptedProgram = (request) => turn ?? planner(request);
    await using site = await openWorld({ model: program, planning: {} });
    const build = await planned(site);
    turn = { text: "Nothing is left to do." };
    const item = { type: "plan-remaining", round: 1, unsatisfied: ["kept-entries"] } as const;
    await site.planning.carryOut(build, [item]);
    await site.rung();
    expect(await site.reports("remaining.unplannable")).toMatchObject([
      { round: 1, message: expect.stringContaining("remaining-1.txt") },
    ]);
    const { budgetMicroUsd, spentMicroUsd } = await site.store.ledger.balance(build.id);
    const reservation = { request: "all", account: build.id, holder: "a", kind: "compute" } as const;
    await site.store.ledger.reserve({ ...reservation, microUsd: budgetMicroUsd - spentMicroUsd });
    await site.planning.carryOut(build, [{ ...item, round: 2 }]);
    await site.rung();
    expect(await site.reports("remaining.refused")).toEqual([{ round: 2, budgetMicroUsd }]);
  });
});

test("the checks of every criterion and workflow are kept whole", async () => {
  await using site = await openWorld({ model: planner, planning: {} });
  await site.drive();
  const [told] = await site.reports("intent.locked");
  const { checks } = compiledChecksSchema.parse((told as { checks: unknown }).checks);
  const kept = await site.store.builds.records(site.build, "checks");
  expect(kept.flatMap(({ check }) => check).length).toBe(checks.length);
});
