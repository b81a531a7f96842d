import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { expect, test } from "vitest";
import { attemptAt } from "../../testing/plans.ts";
import { type SimulationSettings, usualWorld } from "../fate.ts";
import type { Host, Notice } from "../host.ts";
import { createManualClock } from "../manual-clock.ts";
import { connectSimulation } from "./connect.ts";
import { serveSimulation } from "./serve.ts";
import { createWorldRecord } from "./world-record.ts";

const calm: SimulationSettings = { ...usualWorld, seed: 7, estimateMinutes: [10, 10], sigma: 0, steps: [4, 4] };
const wholeMs = 10 * 60_000;

const build: WorkingBuild = { id: newId("bld"), account: "ada", project: "shop", mode: "new", request: "a shop" };
const attempt = attemptAt("cart");

async function begin() {
  const directory = mkdtempSync(join(tmpdir(), "slipway-channel-"));
  const socketPath = join(directory, "world.sock");
  const clock = createManualClock();
  const record = createWorldRecord();
  const served = await serveSimulation(socketPath, { settings: calm, clock, witness: record });
  return {
    clock,
    record,
    simulation: served.simulation,
    connect: (host: Host) => connectSimulation(socketPath, { host, clock }),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Takes everything, once it may. */
function listener() {
  const keys: (string | null | undefined)[] = [];
  const refusals: Error[] = [];
  let told = Promise.withResolvers<void>();
  const host: Host = {
    async take({ reports = [], reserves }: Notice) {
      const refusal = refusals.shift();
      if (refusal !== undefined) throw refusal;
      keys.push(...reports.map(({ key }) => key));
      told.resolve();
      told = Promise.withResolvers();
      return { reserved: reserves !== undefined, budgetMicroUsd: 0 };
    },
  };
  const hears = async (key: string) => {
    while (!keys.includes(key)) await told.promise;
  };
  return { host, keys, refusals, hears };
}

const checkpoint = (step: number) => `checkpoint.made:${attempt.id}:${step}`;

test("what happens while no coordinator is there is told to the next one, in its order", async () => {
  await using world = await begin();
  const first = listener();
  {
    await using work = await world.connect(first.host);
    await work.carryOut(build, [attempt]);
    await first.hears("attempt.heard:cart:1:0");
    await world.simulation.settled();
  }
  await world.clock.advance(wholeMs / 4);
  expect(world.record.steps.size).toBe(1);
  const second = listener();
  await using work = await world.connect(second.host);
  await second.hears(checkpoint(1));
  for (let step = 2; step <= 4; step++) {
    await world.simulation.settled();
    await world.clock.advance(wholeMs / 4);
  }
  await second.hears("attempt.ended:cart:1:0");
  expect(second.keys).toEqual([
    ...[checkpoint(1), checkpoint(2), checkpoint(3)],
    ...["attempt.offered:cart:1:0", "attempt.ended:cart:1:0"],
  ]);
  await work.reattach(build, [attempt]);
  expect([...world.record.starts.values()]).toEqual([1]);
});

test("what a coordinator fails to take is told again", async () => {
  await using world = await begin();
  const coordinator = listener();
  coordinator.refusals.push(new Error("the database is away"), new Error("still"));
  await using work = await world.connect(coordinator.host);
  await work.carryOut(build, [attempt]);
  await coordinator.hears("attempt.heard:cart:1:0");
  await world.simulation.settled();
  expect(coordinator.refusals).toEqual([]);
});

test("of two coordinators one is told, and the other one when that is gone", async () => {
  await using world = await begin();
  const [first, second] = [listener(), listener()];
  const gone = await world.connect(first.host);
  await using left = await world.connect(second.host);
  await left.carryOut(build, [attempt]);
  await first.hears("attempt.heard:cart:1:0");
  await world.simulation.settled();
  expect(second.keys).toEqual([]);
  await gone[Symbol.asyncDispose]();
  await world.clock.advance(wholeMs / 4);
  await second.hears(checkpoint(1));
});

test("a coordinator hears of sandboxes that others have begun", async () => {
  await using world = await begin();
  await world.simulation.carryOut(build, [attempt]);
  await using work = await world.connect(listener().host);
  expect(work.heardAtMs(build.id, "cart", 1)).toBeUndefined();
  await work.reattach(build, [attempt]);
  expect(work.heardAtMs(build.id, "cart", 1)).toBe(world.clock.now());
  await work.reattach(build, []);
  expect(world.simulation.alive(build.id)).toEqual([]);
});

test("an order that the world can not hear fails", async () => {
  const world = await begin();
  await using work = await world.connect(listener().host);
  await world[Symbol.asyncDispose]();
  await expect(work.carryOut(build, [attempt])).rejects.toMatchObject({ code: "provider_unavailable" });
});
