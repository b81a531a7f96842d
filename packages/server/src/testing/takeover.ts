import { setTimeout as delay } from "node:timers/promises";
import type { BuildId } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { startPostgres } from "@slipway/store/testing/postgres";
import { expect, test } from "vitest";
import { startRestate } from "../drive/restate/testing.ts";
import { type SimulationSettings, usualWorld } from "../simulated/fate.ts";
import { startCoordinator } from "./coordinator.ts";
import { endOf, endWithoutFaults, examineBuild } from "./examine.ts";
import { numberedBuild } from "./numbered-build.ts";
import type { DriveName } from "./world/coordinator.ts";
import { openWorld } from "./world.ts";

const world: SimulationSettings = {
  ...usualWorld,
  seed: 5,
  tasks: [6, 6],
  estimateMinutes: [1, 2],
  pace: 1,
  stageMs: [200, 2000],
  shares: { ...usualWorld.shares, failed: 0.2, died: 0.1 },
};

export function testTakeover(drive: DriveName): void {
  test(`of two servers on one Postgres, driven by ${drive}, the one that is left goes on with all builds`, async () => {
    await using postgres = await startPostgres();
    await using set = await openWorld({
      simulation: { settings: world, factor: 30 },
      store: { url: await postgres.createDatabase() },
    });
    const { store, databaseUrl, worldSocket, speed } = set;
    await using restate = drive === "restate" ? await startRestate() : null;
    const start = (name: string) => {
      // Longer than a turn waits, and short by the real clock.
      const shared = { databaseUrl, worldSocket, speed, leaseMs: 600_000, restate: restate?.settings };
      return startCoordinator({ name, ...shared });
    };
    const first = start("server-1");
    await first.ready;
    // Each lasts for half a minute or more: so long no process is waited for, nor a lease.
    const builds = [3, 6, 22].map((number) => numberedBuild(number));
    for (const id of builds) await set.create({ id });
    await holds(store, "server-1", builds);
    await using second = start("server-2");
    await second.ready;
    const later = numberedBuild(9);
    await until(async () => (await Promise.all(builds.map((id) => hasAttempts(store, id)))).every(Boolean));
    expect(await holdersOf(store, builds)).toEqual(["server-1", "server-1", "server-1"]);

    await first.kill();
    await set.create({ id: later });
    await holds(store, "server-2", [...builds, later]);
    for (const id of [...builds, later]) {
      await until(async () => (await store.builds.get(id)).endedAt !== null);
      await set.simulation.settled();
      await examineBuild(store, set.record, id);
      expect(await endOf(store, id)).toEqual(await endWithoutFaults(world, id));
    }
    expect(Math.max(...set.record.steps.values())).toBe(1);
  }, 300_000);
}

async function holdersOf(store: Store, builds: readonly BuildId[]): Promise<(string | null)[]> {
  const leases = [];
  for (const id of builds) leases.push((await store.leases.find(id)).holder);
  return leases;
}

async function holds(store: Store, name: string, builds: readonly BuildId[]): Promise<void> {
  await until(async () => (await holdersOf(store, builds)).every((holder) => holder === name));
}

async function hasAttempts(store: Store, id: BuildId): Promise<boolean> {
  return (await store.builds.state(id)).attempts.length > 0;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await delay(20);
}
