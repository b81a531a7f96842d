import { type AttemptId, type BuildId, type End, endAs, newId } from "@slipway/contract";
import type { AttemptWork, NewEvent, WorkingBuild } from "@slipway/engine";
import { describe, expect, test } from "vitest";
import { allEvents } from "../testing/all-events.ts";
import { expectNothingLost, lasting } from "../testing/handovers.ts";
import { numberedBuild } from "../testing/numbered-build.ts";
import { attemptAt } from "../testing/plans.ts";
import { openWorld } from "../testing/world.ts";
import { fateOf, type SimulationSettings, usualWorld } from "./fate.ts";
import type { Notice } from "./host.ts";
import { createManualClock } from "./manual-clock.ts";
import { createSimulation } from "./simulation.ts";
import { createWorldRecord } from "./testing/world-record.ts";

const calm: SimulationSettings = { ...usualWorld, seed: 7, estimateMinutes: [10, 10], sigma: 0, steps: [4, 4] };
const stepMs = 150_000;
const wild = { failed: 0.3, interrupted: 0.1, died: 0.3, lost: 0.05, fixed: 0.5, unsatisfied: 0.5, unplannable: 0.05 };

/** A world with a host that writes down what it is told, and refuses money on demand. */
function begin(settings: SimulationSettings = calm) {
  const clock = createManualClock();
  const notices: Notice[] = [];
  const money = { isThere: true };
  const host = {
    async take(notice: Notice) {
      notices.push(notice);
      return { reserved: notice.reserves !== undefined && money.isThere, budgetMicroUsd: 0 };
    },
  };
  const record = createWorldRecord();
  const simulation = createSimulation({ settings, clock, host, witness: record });
  const build: WorkingBuild = { id: newId("bld"), account: "ada", project: "shop", mode: "new", request: "a shop" };
  const attempt = attemptAt("cart");
  return {
    clock,
    money,
    record,
    simulation,
    build,
    attempt,
    carryOut: (change: Partial<AttemptWork> = {}) => simulation.carryOut(build, [{ ...attempt, ...change }]),
    /** Reports since the last look. */
    look: () => notices.splice(0).flatMap(({ reports = [] }) => reports),
    settlements: () => notices.flatMap(({ settles }) => (settles === undefined ? [] : [settles])),
    reservations: () => notices.flatMap(({ reserves }) => (reserves === undefined ? [] : [reserves])),
  };
}

const types = (events: readonly { type: string }[]) => events.map(({ type }) => type);
const ends = (events: readonly NewEvent[]) =>
  events.filter(({ type }) => type === "attempt.ended").map(({ data }) => data);

describe("an attempt", () => {
  test("goes from step to step, each with its checkpoint, and ends as it is fated to", async () => {
    const world = begin();
    await world.carryOut();
    await world.clock.advance(0);
    expect(types(world.look())).toEqual(["sandbox.changed", "attempt.heard"]);
    await world.clock.advance(stepMs - 1);
    expect(world.look()).toEqual([]);
    await world.clock.advance(1);
    expect(world.look()).toMatchObject([{ type: "checkpoint.made", data: { checkpoint: { details: { step: 1 } } } }]);
    await world.clock.advance(3 * stepMs);
    const last = world.look();
    expect(types(last)).toEqual(["checkpoint.made", "checkpoint.made", "attempt.offered", "attempt.ended"]);
    expect(ends(last)).toEqual([{ task: "cart", attempt: 1, respawn: 0, end: endAs("merged") }]);
    expect([...world.record.steps.values()]).toEqual([1, 1, 1, 1]);
  });

  test("has the money of a step before it begins, and pays for each once", async () => {
    const world = begin();
    await world.carryOut();
    await world.clock.advance(4 * stepMs);
    const reserved = world.reservations();
    const settled = world.settlements();
    expect(reserved.map(({ kind }) => kind)).toEqual(["model", "compute", "model", "compute"]);
    expect(settled.map(({ request }) => request)).toEqual(reserved.map(({ request }) => request));
    expect(settled.reduce((sum, { microUsd }) => sum + microUsd, 0)).toBe(
      world.record.spentMicroUsd.get(world.build.id),
    );
  });

  test("is begun once, however often it is asked for", async () => {
    const world = begin();
    await world.carryOut();
    await world.carryOut();
    await world.simulation.reattach(world.build, [world.attempt]);
    await world.clock.advance(4 * stepMs);
    expect([...world.record.starts.values()]).toEqual([1]);
    expect([...world.record.steps.values()]).toEqual([1, 1, 1, 1]);
  });

  test("speaks when its sandbox has started, and never when it was ended before", async () => {
    const world = begin({ ...calm, startMs: [1000, 1000] });
    await world.carryOut();
    await world.clock.advance(999);
    expect(world.look()).toEqual([]);
    await world.clock.advance(1);
    expect(world.look().map(({ type }) => type)).toContain("attempt.heard");
    const ended = begin({ ...calm, startMs: [1000, 1000] });
    await ended.carryOut();
    await ended.simulation.reattach(ended.build, []);
    await ended.clock.advance(2000);
    expect(ended.look().map(({ type }) => type)).not.toContain("attempt.heard");
  });

  test("stands still while it is paused, and goes on in the middle of a step", async () => {
    const world = begin();
    await world.carryOut();
    await world.clock.advance(1.5 * stepMs);
    await world.carryOut({ paused: true });
    await world.clock.advance(1000 * stepMs);
    expect(world.record.steps.size).toBe(1);
    await world.carryOut();
    await world.clock.advance(stepMs / 2 - 1);
    expect(world.record.steps.size).toBe(1);
    await world.clock.advance(1);
    expect(world.record.steps.size).toBe(2);
  });

  test("that is refused money says so, and asks again when it is to go on", async () => {
    const world = begin();
    world.money.isThere = false;
    await world.carryOut();
    await world.clock.advance(stepMs);
    expect(ends(world.look())).toMatchObject([{ end: { reason: "budget" } }]);
    await world.carryOut({ paused: true });
    await world.carryOut();
    await world.clock.advance(stepMs);
    const again = world.look();
    expect(ends(again)).toMatchObject([{ end: { reason: "budget" } }]);
    expect(again[0]?.key).toBe("attempt.ended:cart:1:0:refused-2");
    await world.carryOut({ paused: true });
    world.money.isThere = true;
    await world.carryOut();
    await world.clock.advance(4 * stepMs);
    expect(ends(world.look())).toMatchObject([{ end: endAs("merged") }]);
  });

  test("that is refused money while it is paused says nothing", async () => {
    const world = begin();
    world.money.isThere = false;
    await Promise.all([world.carryOut(), world.carryOut({ paused: true })]);
    await world.clock.advance(stepMs);
    expect(ends(world.look())).toEqual([]);
  });

  test("that is ended pays for what it has used, and is not begun again by an order that comes late", async () => {
    const world = begin();
    await world.carryOut();
    await world.clock.advance(stepMs / 2);
    const { id, task } = world.attempt;
    await world.simulation.carryOut(world.build, [{ type: "end-attempt", id, task, keepSandbox: false }]);
    const [reserved] = world.reservations();
    // A step reserves twice what it costs.
    expect(world.settlements()).toMatchObject([{ end: "cut", microUsd: Math.round((reserved?.microUsd ?? 0) / 4) }]);
    await world.carryOut();
    await world.clock.advance(10 * stepMs);
    expect(world.record.steps.size).toBe(0);
    expect(world.simulation.alive()).toEqual([]);
  });

  test("that is ended while it asks for money gives back what it gets", async () => {
    const world = begin();
    await world.carryOut();
    const { id, task } = world.attempt;
    await world.simulation.carryOut(world.build, [{ type: "end-attempt", id, task, keepSandbox: false }]);
    await world.simulation.settled();
    expect(world.settlements()).toMatchObject([{ request: world.reservations()[0]?.request, microUsd: 0 }]);
  });
});

describe("a sandbox", () => {
  const mortal = { ...calm, shares: { ...calm.shares, died: 1 } };

  test("that dies is told of, and a respawn goes on after the last finished step", async () => {
    const world = begin(mortal);
    for (let respawn = 0; world.record.steps.size < 4 && respawn < 100; respawn++) {
      await world.carryOut({ respawn });
      await world.clock.advance(5 * stepMs);
      if (world.record.steps.size < 4) {
        expect(ends(world.look())).toMatchObject([{ respawn, end: { reason: "runner_lost" } }]);
        expect(world.simulation.alive()).toEqual([]);
      }
    }
    expect([...world.record.steps.values()]).toEqual([1, 1, 1, 1]);
    expect(world.record.starts.size).toBeGreaterThan(1);
  });

  test("that is lost says nothing any more, until somebody looks for it", async () => {
    const world = begin({ ...calm, shares: { ...calm.shares, lost: 1 } });
    await world.carryOut();
    await world.clock.advance(5 * stepMs);
    expect(ends(world.look())).toEqual([]);
    const heardAtMs = world.simulation.heardAtMs(world.build.id, "cart", 1) ?? 0;
    expect(heardAtMs).toBeLessThan(world.clock.now());
    await world.simulation.reattach(world.build, [world.attempt]);
    expect(ends(world.look())).toMatchObject([{ respawn: 0, end: { reason: "runner_lost" } }]);
    await world.simulation.reattach(world.build, [world.attempt]);
    expect(world.look()).toEqual([]);
  });

  test("is heard as long as it is there", async () => {
    const world = begin();
    await world.carryOut();
    await world.clock.advance(1000);
    expect(world.simulation.heardAtMs(world.build.id, "cart", 1)).toBe(world.clock.now());
    expect(world.simulation.heardAtMs(world.build.id, "cart", 2)).toBeUndefined();
  });

  test("that nobody asks for any more is ended when its build is taken up again, and what is missing is begun", async () => {
    const world = begin();
    await world.carryOut();
    const other = { ...world.attempt, id: newId("att") as AttemptId, task: "pay" };
    await world.simulation.reattach(world.build, [other]);
    expect(world.simulation.alive().map(({ task }) => task)).toEqual(["pay"]);
  });
});

test("20,000 sandboxes run at once, with one list of what is due", async () => {
  const world = begin({ ...calm, steps: [1, 1] });
  const all = Array.from({ length: 20_000 }, (_, index) => ({
    ...world.attempt,
    id: newId("att") as AttemptId,
    task: `task-${index}`,
  }));
  await world.simulation.carryOut(world.build, all);
  await world.simulation.settled();
  expect(world.clock.pending).toBe(20_000);
  expect(world.simulation.alive()).toHaveLength(20_000);
  await world.clock.advance(4 * stepMs);
  expect(world.record.steps.size).toBe(20_000);
  expect(world.clock.pending).toBe(0);
});

describe("a build", () => {
  const build = numberedBuild(1);
  const settings: SimulationSettings = { ...usualWorld, seed: 11, tasks: [4, 6], pace: 0.03, rounds: 2, shares: wild };

  test("ends the same way in every world of the same seed", async () => {
    const ran = [await runAlone(settings, build), await runAlone(settings, build)];
    expect(ran[0]).toEqual(ran[1]);
    expect((await runAlone({ ...settings, seed: 12 }, build)).spentMicroUsd).not.toBe(ran[0]?.spentMicroUsd);
  });

  test("runs each step once, and the ledger has what was spent", async () => {
    for (let seed = 1; seed <= 3; seed++) {
      await using world = await openWorld({ clock: createManualClock(), steps: { ...settings, seed } });
      await world.start({ id: build });
      await world.run();
      expect((await world.store.builds.get(build)).endedAt).not.toBeNull();
      expect(Math.max(...world.record.steps.values())).toBe(1);
      expect(Math.max(...world.record.starts.values())).toBe(1);
      expect(await world.store.ledger.balance(build)).toMatchObject({
        spentMicroUsd: world.record.spentMicroUsd.get(build),
        reservedMicroUsd: 0,
      });
    }
  });

  test("hands its sandboxes over again and again, and loses no finished step", async () => {
    const days: SimulationSettings = { ...lasting, tasks: [2, 2], estimateMinutes: [120, 150] };
    await using world = await openWorld({ clock: createManualClock(), steps: days });
    await world.start({ id: build });
    await world.run();
    await expectNothingLost(world, build);
    expect(world.record.handovers.size).toBe(2);
  });

  test("has attempts that end as their fate has it", async () => {
    await using world = await openWorld({ clock: createManualClock(), steps: settings });
    await world.start({ id: build });
    await world.run();
    const ended = (await allEvents(world.store, build)).filter(({ type }) => type === "attempt.ended");
    const reasons = new Set<string>();
    for (const { data } of ended) {
      const { task, attempt, end } = data as { task: string; attempt: number; end: End };
      reasons.add(end.reason);
      if (end.reason !== "runner_lost") expect(end).toEqual(fateOf(settings, { build, task, number: attempt }).end);
    }
    expect(reasons).toEqual(new Set(["merged", "checks_failed", "unavailable", "runner_lost"]));
  });
});

async function runAlone(settings: SimulationSettings, id: BuildId) {
  await using world = await openWorld({ clock: createManualClock(), steps: settings });
  await world.start({ id });
  await world.run();
  const { status, reason } = await world.store.builds.get(id);
  const { tasks } = await world.store.builds.state(id);
  const { spentMicroUsd } = await world.store.ledger.balance(id);
  return { status, reason, spentMicroUsd, tasks, steps: world.record.steps };
}
