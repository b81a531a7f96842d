import type { BuildId } from "@slipway/contract";
import { type LeaseHolder, maxPage, report, type Store, type WorkItem } from "@slipway/engine";
import { describe, expect, test, vi } from "vitest";
import { checks, hash, locked, open, task } from "../testing/plans.ts";
import { stillClock } from "../testing/world/place.ts";
import { openWorld } from "../testing/world.ts";
import { type CoordinatorParts, openCoordinator } from "./coordinator.ts";
import type { Drive } from "./drive.ts";
import { createReports, type Reports } from "./reports.ts";
import { openTimers } from "./timers.ts";

const leaseMs = 60_000;
const quick = { timeout: 60_000, interval: 20 };
let servers = 0;

/** A store, and a clock that stands still. */
async function begin() {
  const world = await openWorld({ clock: stillClock(), store: {} });
  return { ...world, create: async (): Promise<BuildId> => (await world.create()).id };
}
type Begun = Awaited<ReturnType<typeof begin>>;

/** A server on it, with what it was asked for, its turns and its warnings. */
async function serve(set: Begun, parts: Partial<CoordinatorParts> = {}) {
  const asked: string[] = [];
  const reattached: BuildId[] = [];
  const turns: BuildId[] = [];
  const warnings: string[] = [];
  const name = `server-${++servers}`;
  const work = {
    carryOut: async ({ id }: { readonly id: BuildId }, items: readonly WorkItem[]) =>
      void asked.push(...items.map((item) => `${item.type} of ${id}`)),
    reattach: async ({ id }: { readonly id: BuildId }) => void reattached.push(id),
    heardAtMs: () => undefined,
  };
  const reports = createReports(set.store);
  const opened = await openCoordinator({
    store: set.store,
    reports,
    work,
    name,
    slots: 10,
    clock: set.clock,
    leaseMs,
    sweepMs: 20,
    onTurn: (build) => void turns.push(build),
    warn: (message) => void warnings.push(message),
    ...parts,
  });
  const coordinator = Object.assign(opened, reports);
  return { coordinator, name, asked, reattached, turns, warnings };
}

/** All that the stages would report, at once. */
async function plan(coordinator: Reports, build: BuildId): Promise<void> {
  await coordinator.report(build, [
    report("intent.drafted", "intent.drafted", { open, start: { mode: "new" } }),
    report("intent.locked", "intent.locked", { locked, checks }),
    report("plan.made", "plan.made", { plan: { mode: "new", intentHash: hash, tasks: [task("cart")] } }),
  ]);
}

/** The store with one of its leases' operations replaced. */
function withLeases(store: Store, leases: Partial<Store["leases"]>): Store {
  return { ...store, leases: { ...store.leases, ...leases } };
}

/** The store, and a gate that one look at a lease passes after it has read it. */
function gateFinding(store: Store) {
  let gate: { readonly entered: PromiseWithResolvers<void>; readonly opened: PromiseWithResolvers<void> } | undefined;
  const find: Store["leases"]["find"] = async (build) => {
    const lease = await store.leases.find(build);
    const passed = gate;
    gate = undefined;
    passed?.entered.resolve();
    await passed?.opened.promise;
    return lease;
  };
  return {
    store: withLeases(store, { find }),
    close() {
      gate = { entered: Promise.withResolvers(), opened: Promise.withResolvers() };
      return { entered: gate.entered.promise, open: gate.opened.resolve };
    },
  };
}

describe("a server whose build another server took", () => {
  test("lets go of it: its slots are free for others, and only the other one drives it", async () => {
    await using set = await begin();
    const { store } = set;
    const server = await serve(set, { slots: 1 });
    await using coordinator = server.coordinator;
    const [lost, waiting] = [await set.create(), await set.create()];
    await plan(coordinator, lost);
    await vi.waitFor(() => expect(server.asked).toContain(`attempt of ${lost}`), quick);
    await plan(coordinator, waiting);
    await vi.waitFor(async () => expect((await store.builds.state(waiting)).tasks).toHaveLength(1), quick);
    expect(server.asked).not.toContain(`attempt of ${waiting}`);

    await store.leases.take(lost, { holder: "other", generation: 2 }, 10 * leaseMs);
    const turns = server.turns.filter((build) => build === lost).length;
    // The build that waits has had a turn since, the one that is lost has not.
    set.clock.pass(0.6 * leaseMs);
    const before = server.turns.length;
    coordinator.ring(waiting);
    await vi.waitFor(() => expect(server.turns.slice(before)).toContain(waiting), quick);
    expect(server.asked).not.toContain(`attempt of ${waiting}`);
    set.clock.pass(0.6 * leaseMs);
    await vi.waitFor(() => expect(server.asked).toContain(`attempt of ${waiting}`), quick);
    expect(server.turns.filter((build) => build === lost)).toHaveLength(turns);
    expect(await store.leases.find(lost)).toMatchObject({ holder: "other", generation: 2 });
    expect(server.warnings).toEqual([]);
  });

  test("looks at all that should be under way when it comes back, however soon", async () => {
    await using set = await begin();
    const server = await serve(set);
    await using coordinator = server.coordinator;
    const build = await set.create();
    coordinator.ring(build);
    await vi.waitFor(() => expect(server.reattached).toEqual([build]), quick);
    const by = { holder: "other", generation: 2 };
    await set.store.leases.take(build, by, leaseMs);
    await set.store.leases.release(build, by);
    await vi.waitFor(() => expect(server.reattached).toEqual([build, build]), quick);
    expect(await set.store.leases.find(build)).toMatchObject({ holder: server.name, generation: 3 });
  });
});

test("a server with more builds of its own than a page has adopts each once, and those of a dead server, too", async () => {
  await using set = await begin();
  const { store } = set;
  const name = `server-${++servers}`;
  const hold = async (holder: string, ms: number) => {
    const build = await set.create();
    await store.leases.take(build, { holder, generation: 1 }, ms);
    return build;
  };
  const own: BuildId[] = [];
  for (let count = 0; count < maxPage + 10; count++) own.push(await hold(name, leaseMs));
  set.clock.pass(1);
  // Over sooner than what is taken from now on, however many turns its own have had by then.
  const dead = [await hold("dead", leaseMs / 2), await hold("dead", leaseMs / 2)];
  const takes = new Map<BuildId, number>();
  let sweeps = 0;
  const watched = withLeases(store, {
    async take(build, by, ...rest) {
      if (rest.at(1) === undefined) takes.set(build, (takes.get(build) ?? 0) + 1);
      return await store.leases.take(build, by, ...rest);
    },
    async expired(options) {
      sweeps += 1;
      return await store.leases.expired(options);
    },
  });
  const server = await serve(set, { name, store: watched });
  await using _ = server.coordinator;
  await vi.waitFor(() => expect(new Set(server.turns)).toEqual(new Set(own)), { timeout: 240_000, interval: 50 });
  const seen = sweeps;
  await vi.waitFor(() => expect(sweeps).toBeGreaterThan(seen + 3), quick);
  expect([...takes.values()].filter((count) => count > 1)).toEqual([]);

  takes.clear();
  set.clock.pass(leaseMs / 2);
  await vi.waitFor(() => expect(server.turns).toEqual(expect.arrayContaining(dead)), quick);
  expect(new Map(takes)).toEqual(new Map(dead.map((build) => [build, 1])));
  expect(server.warnings).toEqual([]);
}, 300_000);

test("a build that is rung for is taken once, though it is found in a sweep meanwhile", async () => {
  await using set = await begin();
  const finding = gateFinding(set.store);
  let sweeps = false;
  const store = withLeases(finding.store, {
    expired: async (options) => (sweeps ? await set.store.leases.expired(options) : []),
  });
  const server = await serve(set, { store });
  await using coordinator = server.coordinator;
  const build = await set.create();
  const { entered, open } = finding.close();
  coordinator.ring(build);
  await entered;
  sweeps = true;
  await vi.waitFor(() => expect(server.turns).toEqual([build]), quick);
  open();
  // Heard after the ring before it has come to its end.
  coordinator.ring(build);
  await vi.waitFor(() => expect(server.turns).toEqual([build, build]), quick);
  expect(await holderOf(set.store, build)).toEqual({ holder: server.name, generation: 1 });
  expect(server.reattached).toEqual([build]);
});

describe("a build that a dead server has left", () => {
  /** Money of the build, set aside by its holder. */
  const reserve = async ({ store }: Begun, build: BuildId, holder: string, microUsd: number) => {
    const request = `${build} ${holder} ${microUsd}`;
    expect(await store.ledger.reserve({ request, account: build, holder, kind: "model", microUsd })).toBe(true);
  };

  test("is taken over after what that one had reserved for it is spent, and nothing else is", async () => {
    await using set = await begin();
    const { store } = set;
    const name = `server-${++servers}`;
    const [left, elsewhere] = [await set.create(), await set.create()];
    for (const build of [left, elsewhere]) {
      await store.leases.take(build, { holder: "dead", generation: 1 }, build === left ? leaseMs : 10 * leaseMs);
      await reserve(set, build, "dead", 10);
    }
    await reserve(set, left, name, 20);
    set.clock.pass(leaseMs);
    const spent: number[] = [];
    const watched = withLeases(store, {
      async take(build, ...rest) {
        spent.push((await store.ledger.balance(build)).spentMicroUsd);
        return await store.leases.take(build, ...rest);
      },
    });
    const server = await serve(set, { name, store: watched });
    await using _ = server.coordinator;
    await vi.waitFor(() => expect(server.turns).toContain(left), quick);
    expect(spent[0]).toBe(10);
    expect(await store.ledger.balance(left)).toMatchObject({ spentMicroUsd: 10, reservedMicroUsd: 20 });
    expect(await store.ledger.balance(elsewhere)).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 10 });

    // In a generation of its own it loses nothing of what it has reserved.
    await store.leases.release(left, await holderOf(store, left));
    await vi.waitFor(async () => expect(await holderOf(store, left)).toEqual({ holder: name, generation: 3 }), quick);
    expect(await store.ledger.balance(left)).toMatchObject({ spentMicroUsd: 10, reservedMicroUsd: 20 });
    expect(server.warnings).toEqual([]);
  });

  test("and that has come back before it was taken over stays that one's, with its money", async () => {
    await using set = await begin();
    const { store } = set;
    const [build, other] = [await set.create(), await set.create()];
    await store.leases.take(build, { holder: "slow", generation: 1 }, leaseMs);
    await reserve(set, build, "slow", 10);
    const late = withLeases(store, { expired: async (options) => [build, ...(await store.leases.expired(options))] });
    const server = await serve(set, { store: late });
    await using _ = server.coordinator;
    await vi.waitFor(() => expect(server.turns).toContain(other), quick);
    expect(server.turns).not.toContain(build);
    expect(await store.leases.find(build)).toMatchObject({ holder: "slow", generation: 1 });
    expect(await store.ledger.balance(build)).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 10 });
  });
});

async function holderOf({ leases }: Store, build: BuildId): Promise<LeaseHolder> {
  const { holder, generation } = await leases.find(build);
  return { holder: holder ?? "nobody", generation };
}

test("a build whose work is elsewhere is left alone, with its lease and its bell, until it is here", async () => {
  await using set = await begin();
  const { store } = set;
  const [elsewhere, other] = [await set.create(), await set.create()];
  await store.leases.take(elsewhere, { holder: "dead", generation: 1 }, leaseMs);
  set.clock.pass(leaseMs);
  const lease = await store.leases.find(elsewhere);
  let isHere = false;
  let asked = 0;
  const server = await serve(set, {
    work: {
      async canCarryOn(build) {
        if (build === elsewhere) asked += 1;
        return isHere || build !== elsewhere;
      },
      carryOut: async () => {},
      reattach: async () => {},
      heardAtMs: () => undefined,
    },
  });
  await using coordinator = server.coordinator;
  coordinator.ring(elsewhere);
  await vi.waitFor(() => expect(server.turns).toContain(other), quick);
  await vi.waitFor(() => expect(asked).toBeGreaterThan(3), quick);
  expect(server.turns).not.toContain(elsewhere);
  expect(await store.leases.find(elsewhere)).toEqual(lease);
  expect(server.warnings).toEqual([expect.stringMatching(`^Cannot drive ${elsewhere} here.* Start the server`)]);
  isHere = true;
  await vi.waitFor(() => expect(server.turns).toContain(elsewhere), quick);
  expect(await store.leases.find(elsewhere)).toMatchObject({ holder: server.name, generation: 2 });
});

test("a build whose work is nowhere is driven to its end when it is cancelled", async () => {
  await using set = await begin();
  const { store } = set;
  const build = await set.create();
  const nothing = async () => {};
  const work = { canCarryOn: async () => false, carryOut: nothing, reattach: nothing, heardAtMs: () => undefined };
  const server = await serve(set, { work });
  await using coordinator = server.coordinator;
  await vi.waitFor(() => expect(server.warnings).toEqual([expect.stringMatching("cancel the build")]), quick);
  expect(server.turns).toEqual([]);
  await coordinator.report(build, [report("order.cancel", "order.cancel", {})]);
  await vi.waitFor(async () => expect((await store.builds.get(build)).status).toBe("cancelled"), quick);
  await vi.waitFor(async () => expect((await store.leases.find(build)).holder).toBe(null), quick);
});

describe("a bell", () => {
  test("that rings between a turn and the wait for it is heard", async () => {
    await using set = await begin();
    let rung = false;
    const server = await serve(set, {
      onTurn(build) {
        if (rung) return;
        rung = true;
        void set.store.events.report(build, [report("order.pause", "order.pause", {})]);
        server.coordinator.ring(build);
      },
    });
    await using _ = server.coordinator;
    const build = await set.create();
    server.coordinator.ring(build);
    await vi.waitFor(async () => expect(await set.store.builds.get(build)).toMatchObject({ status: "paused" }), quick);
  });

  test("that rings while the last ring is under way is rung again", async () => {
    await using set = await begin();
    // No sweep makes up for the ring.
    const finding = gateFinding(withLeases(set.store, { unheard: async () => [] }));
    let drive: Drive | undefined;
    const server = await serve(set, {
      store: finding.store,
      openDrive: async (parts) => (drive = await openTimers(parts)),
    });
    await using coordinator = server.coordinator;
    const build = await set.create();
    coordinator.ring(build);
    await vi.waitFor(() => expect(server.turns).toHaveLength(1), quick);
    const { entered, open } = finding.close();
    coordinator.ring(build);
    await entered;
    // A turn by another ring: what the first one has read is old by now.
    const { bell } = await set.store.leases.find(build);
    await drive?.ring(bell ?? "");
    await vi.waitFor(() => expect(server.turns).toHaveLength(2), quick);
    await coordinator.report(build, [report("order.pause", "order.pause", {})]);
    open();
    await vi.waitFor(async () => expect(await set.store.builds.get(build)).toMatchObject({ status: "paused" }), quick);
  });

  test("that nobody rings is made up for by a sweep: another process has reported something", async () => {
    await using set = await begin();
    const server = await serve(set);
    await using coordinator = server.coordinator;
    const build = await set.create();
    coordinator.ring(build);
    await vi.waitFor(() => expect(server.turns).toHaveLength(1), quick);
    await set.store.events.report(build, [report("order.pause", "order.pause", {})]);
    await vi.waitFor(async () => expect(await set.store.builds.get(build)).toMatchObject({ status: "paused" }), quick);
  });

  test("of a build that is over rings for nobody", async () => {
    await using set = await begin();
    const server = await serve(set);
    await using coordinator = server.coordinator;
    const [build, other] = [await set.create(), await set.create()];
    await coordinator.report(build, [report("order.cancel", "order.cancel", {})]);
    await vi.waitFor(
      async () => expect(await set.store.builds.get(build)).toMatchObject({ status: "cancelled" }),
      quick,
    );
    await vi.waitFor(async () => expect((await set.store.leases.find(build)).holder).toBeNull(), quick);
    const { generation } = await set.store.leases.find(build);
    await coordinator.report(build, [report("order.pause", "order.pause", {})]);
    // Rings are made one after the other for each build only: this one's effect shows that there was time.
    coordinator.ring(other);
    await vi.waitFor(() => expect(server.turns).toContain(other), quick);
    expect(await set.store.leases.find(build)).toMatchObject({ holder: null, generation });
    expect(server.turns.filter((one) => one === build)).toHaveLength(1);
    expect(server.warnings).toEqual([]);
  });

  test("that rings while its server ends does nothing", async () => {
    await using set = await begin();
    const finding = gateFinding(set.store);
    const { coordinator, turns, warnings } = await serve(set, { store: finding.store });
    const build = await set.create();
    coordinator.ring(build);
    await vi.waitFor(() => expect(turns).toHaveLength(1), quick);
    const { entered, open } = finding.close();
    coordinator.ring(await set.create());
    await entered;
    await coordinator[Symbol.asyncDispose]();
    open();
    expect(await set.store.leases.expired()).toHaveLength(2);
    expect(warnings).toEqual([]);
  });

  test("that rings after the end of its server, with its database or without, does nothing", async () => {
    await using kept = new AsyncDisposableStack();
    const set = kept.use(await begin());
    const { coordinator, warnings } = await serve(set);
    await coordinator[Symbol.asyncDispose]();
    // Only now: a sweep that came in between would have driven it.
    const build = await set.create();
    const lease = await set.store.leases.find(build);
    coordinator.ring(build);
    expect(await set.store.leases.find(build)).toEqual(lease);
    await kept.disposeAsync();
    coordinator.ring(build);
    expect(warnings).toEqual([]);
  });
});
