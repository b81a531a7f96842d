import { expect, test } from "vitest";
import { openStore } from "../store.ts";
import { drivenBuild, driver, leaseMs, openTestStore } from "./context.ts";
import type { OpenedStore } from "./subject.ts";

export function describeLeases(opened: () => OpenedStore): void {
  const other = { holder: "server-2", generation: 1 };
  const nothing = { turn: 0, through: 0, events: [] };

  test("a lease is its holder's until it runs out", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    expect(await store.leases.take(build, other, leaseMs)).toBeUndefined();
    clock.advance(leaseMs - 1);
    expect(await store.leases.take(build, other, leaseMs)).toBeUndefined();
    expect(await store.leases.expired()).toEqual([]);
    clock.advance(1);
    expect(await store.leases.expired()).toEqual([build]);
    const taken = { ...other, leftMs: leaseMs, bell: null };
    expect(await store.leases.take(build, other, leaseMs)).toEqual(taken);
    expect(await store.leases.find(build)).toEqual(taken);
    await expect(store.builds.apply(build, driver, nothing)).rejects.toMatchObject({ code: "lease_lost" });
  });

  test("a higher generation takes over at once, a lower one never", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    const next = { holder: "server-2", generation: 2 };
    expect(await store.leases.take(build, next, leaseMs)).toMatchObject(next);
    clock.advance(10 * leaseMs);
    expect(await store.leases.take(build, driver, leaseMs)).toBeUndefined();
    await expect(store.builds.apply(build, driver, nothing)).rejects.toMatchObject({ code: "lease_lost" });
  });

  test("a turn renews the lease, and a lease that ran out is good until another takes it", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    clock.advance(2 * leaseMs);
    await store.builds.apply(build, driver, nothing);
    expect(await store.leases.find(build)).toEqual({ ...driver, leftMs: leaseMs, bell: null });
    expect(await store.leases.take(build, other, leaseMs)).toBeUndefined();
  });

  test("a released lease is free, and only its holder releases it", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.leases.release(build, other);
    expect(await store.leases.take(build, other, leaseMs)).toBeUndefined();
    await store.leases.release(build, driver);
    expect(await store.leases.take(build, other, leaseMs)).toMatchObject(other);
  });

  test("a build that has ended needs nobody to drive it, once its driver has let it go", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    const end = { status: "succeeded", reason: "satisfied", endedAt: clock.now() } as const;
    await store.builds.apply(build, driver, { ...nothing, build: end });
    clock.advance(2 * leaseMs);
    expect(await store.leases.expired()).toEqual([build]);
    await store.leases.release(build, driver);
    expect(await store.leases.expired()).toEqual([]);
    expect(await store.leases.find(build)).toMatchObject({ holder: null, generation: driver.generation, bell: null });
  });

  test("a build with a report that no turn has taken in is its holder's to hear of, until one has", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.builds.apply(build, driver, { ...nothing, through: 1, events: [{ type: "task.started" }] });
    expect(await store.leases.unheard(driver.holder)).toEqual([]);
    const through = await store.events.report(build, [{ type: "order.pause" }]);
    expect(await store.leases.unheard(driver.holder)).toEqual([build]);
    expect(await store.leases.unheard(other.holder)).toEqual([]);
    await store.builds.apply(build, driver, { turn: 1, through, events: [] });
    expect(await store.leases.unheard(driver.holder)).toEqual([]);
  });

  test("a lease has the bell of the last turn", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.leases.take(build, driver, leaseMs, "bell-1");
    expect(await store.leases.find(build)).toMatchObject({ bell: "bell-1" });
    await store.leases.take(build, driver, leaseMs, "bell-2");
    expect(await store.leases.find(build)).toMatchObject({ ...driver, bell: "bell-2" });
  });

  test("a server whose clock is ahead does not take what another one holds: leases go by the database's clock", async () => {
    const { database } = opened();
    const hourMs = 3_600_000;
    const store = await openStore(database, { now: () => Date.now() });
    const ahead = await openStore(database, { now: () => Date.now() + hourMs });
    const build = await drivenBuild(store);
    expect(await ahead.leases.expired()).toEqual([]);
    expect(await ahead.leases.take(build, other, leaseMs)).toBeUndefined();
    const { leftMs } = await ahead.leases.find(build);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(leaseMs);
    await ahead.builds.apply(build, driver, nothing);
    expect((await store.leases.find(build)).leftMs).toBeLessThanOrEqual(leaseMs);
  });

  test("of two servers that want a free lease at once, one gets it", async () => {
    const { store, url, clock } = opened();
    const build = await drivenBuild(store);
    await using second = await openTestStore(url);
    for (let generation = 2; generation < 12; generation++) {
      clock.advance(leaseMs);
      second.clock.advance(leaseMs);
      const taken = await Promise.all([
        store.leases.take(build, { holder: "server-1", generation }, leaseMs),
        second.store.leases.take(build, { holder: "server-2", generation }, leaseMs),
      ]);
      expect(taken.filter((lease) => lease !== undefined)).toHaveLength(1);
    }
  });
}
