import { setTimeout as delay } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { type SimulationSettings, usualWorld } from "../simulated/fate.ts";
import { allEvents } from "../testing/all-events.ts";
import { startCoordinator } from "../testing/coordinator.ts";
import { endOf, endWithoutFaults, examineBuild } from "../testing/examine.ts";
import { numberedBuild } from "../testing/numbered-build.ts";
import { openWorld, type WorldWith } from "../testing/world.ts";

vi.setConfig({ testTimeout: 300_000 });

const dayMs = 24 * 3_600_000;
const world: SimulationSettings = {
  ...usualWorld,
  seed: 9,
  tasks: [5, 5],
  estimateMinutes: [1, 2],
  pace: 0.1,
  stageMs: [200, 2000],
  shares: { ...usualWorld.shares, failed: 0.2 },
};

function start({ databaseUrl, worldSocket, speed }: WorldWith<"simulation" | "store">, aheadMs = 0) {
  const ahead = { ...speed, aheadMs };
  return startCoordinator({ name: "server-1", databaseUrl, worldSocket, speed: ahead, leaseMs: 75_000 });
}

test("a build that is paused at its budget goes on days later, by another server, when that is raised", async () => {
  await using set = await openWorld({ simulation: { settings: world, factor: 20 }, store: {} });
  const { store } = set;
  const build = numberedBuild(1);
  await set.create({ id: build, budgetMicroUsd: 200_000 });
  {
    await using server = start(set);
    await server.ready;
    await until(async () => (await store.builds.get(build)).status === "paused");
    // What was on its way then has come, and had its turn.
    await set.simulation.settled();
    await until(async () => {
      const { appliedThrough } = await store.builds.get(build);
      return (await store.events.read(build, appliedThrough, { source: "report" })).length === 0;
    });
  }
  const { spentMicroUsd } = await store.ledger.balance(build);
  const { turn } = await store.builds.get(build);
  const started = set.record.starts.size;

  await using server = start(set, 2 * dayMs);
  await server.ready;
  // It has had a turn: only a turn leaves a bell.
  await until(async () => (await store.leases.find(build)).bell !== null);
  // It is paused still: nothing has happened to it but time.
  expect(await store.builds.get(build)).toMatchObject({ status: "paused", reason: "budget", turn });
  expect(set.record.starts.size).toBe(started);
  expect((await store.ledger.balance(build)).spentMicroUsd).toBe(spentMicroUsd);

  await store.events.report(build, [{ type: "order.budget", data: { budgetMicroUsd: 100_000_000 } }]);
  server.ring(build);
  await until(async () => (await store.builds.get(build)).endedAt !== null);
  await set.simulation.settled();
  await examineBuild(store, set.record, build);
  expect(await endOf(store, build)).toEqual(await endWithoutFaults(world, build));
});

test("a cancel that was given while no server ran is honoured by the next one", async () => {
  await using set = await openWorld({ simulation: { settings: { ...world, pace: 100 }, factor: 20 }, store: {} });
  const { store, simulation } = set;
  const build = numberedBuild(1);
  await set.create({ id: build });
  const killed = start(set);
  await killed.ready;
  await until(async () => simulation.alive(build).length > 0);
  await killed.kill();
  await store.events.report(build, [{ type: "order.cancel", data: {} }]);
  expect(simulation.alive(build)).not.toEqual([]);

  await using server = start(set);
  await server.ready;
  await until(async () => (await store.builds.get(build)).endedAt !== null && simulation.alive(build).length === 0);
  await simulation.settled();
  await examineBuild(store, set.record, build);
  expect(await store.builds.get(build)).toMatchObject({ status: "cancelled", reason: "cancelled" });
  const events = await allEvents(store, build);
  const cancelled = events.find(({ type }) => type === "order.cancel")?.sequence ?? 0;
  const after = events.filter(({ type, sequence }) => type === "attempt.started" && sequence > cancelled);
  expect(after).toEqual([]);
});

test.each([
  { what: "two hours", awayMs: dayMs / 12 },
  { what: "two days", awayMs: 2 * dayMs },
])("attempts go on where no server ran for $what: their time and the build's stood still", async ({ awayMs }) => {
  // No faster: a machine that lets this process wait for seconds would make its attempts silent for too long.
  await using set = await openWorld({ simulation: { settings: { ...world, pace: 100 }, factor: 10 }, store: {} });
  const { store, simulation } = set;
  const build = numberedBuild(1);
  await set.create({ id: build });
  const killed = start(set);
  await killed.ready;
  await until(async () => simulation.alive(build).length > 0);
  await killed.kill();
  const { lastEvent, turn } = await store.builds.get(build);

  await using server = start(set, awayMs);
  await server.ready;
  await until(async () => {
    const now = await store.builds.get(build);
    return now.endedAt !== null || now.turn > turn + 1;
  });
  const ends = ["attempt.closed", "attempt.respawned", "task.retried", "task.failed", "build.ended"];
  const since = await store.events.read(build, lastEvent, { source: "decision" });
  expect(since.filter(({ type }) => ends.includes(type))).toEqual([]);
  expect(await store.builds.get(build)).toMatchObject({ status: "running", endedAt: null });
  expect(simulation.alive(build)).not.toEqual([]);
});

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await delay(20);
}
