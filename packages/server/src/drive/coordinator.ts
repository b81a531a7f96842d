import { setTimeout as sleep } from "node:timers/promises";
import { type BuildId, coordinatorHeartbeatMs } from "@slipway/contract";
import { createFleet, createTick, maxPage, type NewEvent, type Store, type Work } from "@slipway/engine";
import type { OpenDrive } from "./drive.ts";
import { openTimers } from "./timers.ts";

/** Drives the builds of a store, each as long as no other server does. */
export interface Coordinator extends AsyncDisposable {
  /** Keeps what happened in a build, and lets its driver know. */
  report(build: BuildId, events: readonly NewEvent[]): Promise<void>;
  /** There is something new in the build. Nobody waits for it: a ring that is lost is made up for by the next sweep. */
  ring(build: BuildId): void;
}

export interface CoordinatorParts {
  readonly store: Store;
  /** What wakes builds for their turns; timers of this process when left out. */
  readonly openDrive?: OpenDrive | undefined;
  /** What carries out the decisions; it reports by the coordinator that it is made for. */
  readonly work: (coordinator: Coordinator) => Work;
  /** Of this server among those that share the store. */
  readonly name: string;
  /** Sandboxes that may work at the same time, of all builds together. */
  readonly slots: number;
  readonly clock: CoordinatorClock;
  readonly leaseMs?: number | undefined;
  /** How often builds are looked for that nobody drives. */
  readonly sweepMs?: number | undefined;
  /** A turn of the build is over. */
  readonly onTurn?: ((build: BuildId) => void) | undefined;
  readonly warn: (message: string) => void;
}

/** `speed`: how much faster it goes than the real time, by which timers wait. */
export interface CoordinatorClock {
  now(): number;
  readonly speed?: number;
}

/** A missed heartbeat lets another server take over. */
const defaultLeaseMs = 1.25 * coordinatorHeartbeatMs;

export async function openCoordinator(parts: CoordinatorParts): Promise<Coordinator> {
  const { store, name, slots, clock, warn } = parts;
  const { openDrive = openTimers, leaseMs = defaultLeaseMs, sweepMs = 5000 } = parts;
  /** Builds that this server drives: in which generation, and when they had their last turn here. */
  const driven = new Map<BuildId, { readonly generation: number; readonly turnAtMs: number }>();
  let isClosed = false;
  await using stack = new AsyncDisposableStack();
  // Last of all: another server may go on at once.
  stack.defer(async () => {
    for (const build of driven.keys()) await release(build);
  });

  const release = async (build: BuildId) => {
    const { holder, generation } = await store.leases.find(build);
    if (holder === name) await store.leases.release(build, { holder, generation });
  };

  /** Those that this server can not carry on, and has said so. */
  const leftAlone = new Set<BuildId>();
  const canCarryOn = async (build: BuildId): Promise<boolean> => {
    const isHere = (await work.canCarryOn?.(build)) ?? true;
    if (isHere) leftAlone.delete(build);
    else if (await isCancelled(build)) return true;
    else if (!leftAlone.has(build)) {
      leftAlone.add(build);
      const advice = "Start the server that has it; if there is none any more, cancel the build.";
      warn(`${build} is not driven from here: its work is not in this state directory. ${advice}`);
    }
    return isHere;
  };

  /** Its user wants it ended, for which nothing of its work is needed. */
  const isCancelled = async (build: BuildId): Promise<boolean> => {
    const { status, appliedThrough } = await store.builds.get(build);
    const told = await store.events.read(build, appliedThrough, { source: "report", limit: maxPage });
    return status === "cancelled" || told.some(({ type }) => type === "order.cancel");
  };

  /** In the next generation: what has driven the build before is fenced off. */
  const take = async (build: BuildId): Promise<void> => {
    if (!(await canCarryOn(build))) return;
    const { holder, generation, leftMs } = await store.leases.find(build);
    // Somebody else who found it free was sooner.
    if (driven.get(build)?.generation === generation && holder === name && leftMs > 0) return;
    if (holder !== null && holder !== name) {
      // It has come back meanwhile.
      if (leftMs > 0) return;
      // While the lease still names it: whoever dies between the two leaves that to the next one.
      await store.ledger.abandon(holder, build);
    }
    const by = { holder: name, generation: generation + 1 };
    if ((await store.leases.take(build, by, leaseMs)) === undefined) return;
    driven.set(build, { generation: by.generation, turnAtMs: clock.now() });
    tick.forget(build);
    try {
      await drive.drive(build, by.generation);
    } catch (error) {
      driven.delete(build);
      await store.leases.release(build, by);
      throw error;
    }
  };

  /** Under way: a bell and a sweep may find the same build free. */
  const adopting = new Map<BuildId, Promise<void>>();
  const adopt = (build: BuildId): Promise<void> => {
    const begun = adopting.get(build) ?? take(build).finally(() => adopting.delete(build));
    adopting.set(build, begun);
    return begun;
  };

  const bells = createBells(async (build) => {
    if (isClosed) return;
    const { holder, bell, leftMs } = await store.leases.find(build);
    const isFree = holder === null || leftMs <= 0;
    const isOver = isFree && (await store.builds.get(build)).endedAt !== null;
    if (isClosed || isOver) return;
    if (isFree) await adopt(build);
    else if (bell !== null) await drive.ring(bell);
  }, warn);

  const tryAdopt = (build: BuildId) =>
    adopt(build).catch((error: Error) => warn(`${build} is not driven for now: ${error.message}`));

  /** Another server has taken them while this one heard nothing. */
  const letGoOfLost = () => {
    for (const [build, { turnAtMs }] of driven) {
      if (clock.now() - turnAtMs <= leaseMs) continue;
      driven.delete(build);
      tick.forget(build);
    }
  };

  /** Those of this server's earlier life first of all. */
  let holder: string | undefined = name;
  const sweep = async () => {
    letGoOfLost();
    const free = await store.leases.expired({ ...(holder && { holder }), limit: maxPage });
    const lost = holder === undefined ? free : free.filter((build) => !driven.has(build));
    if (lost.length < maxPage) holder = undefined;
    await Promise.all(lost.map(tryAdopt));
    // What another process has reported, or a lost bell.
    for (const build of await store.leases.unheard(name)) bells.ring(build);
  };

  const coordinator: Coordinator = {
    async report(build, events) {
      await store.events.report(build, events);
      bells.ring(build);
    },
    ring: bells.ring,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  const fleet = createFleet(slots, (build) => bells.ring(build as BuildId));
  const work = parts.work(coordinator);
  const tick = createTick({ store, work, fleet, clock, leaseMs });
  const drive = stack.use(
    await openDrive({
      name,
      warn,
      async takeTurn(build, by, bell) {
        const turn = await tick(build, by, bell);
        parts.onTurn?.(build);
        if ((driven.get(build)?.generation ?? 0) <= by.generation) {
          if (turn.over) driven.delete(build);
          else driven.set(build, { generation: by.generation, turnAtMs: clock.now() });
        }
        return turn.over ? turn : { over: false, waitMs: turn.waitMs / (clock.speed ?? 1) };
      },
    }),
  );
  stack.use(every(sweepMs, sweep, warn));
  stack.defer(() => {
    isClosed = true;
  });
  const opened = stack.move();
  return coordinator;
}

/** Rings for a build one after the other, and once for all that was rung for meanwhile. */
function createBells(ring: (build: BuildId) => Promise<void>, warn: (message: string) => void) {
  const ringing = new Map<BuildId, "once" | "again">();
  const start = async (build: BuildId) => {
    for (;;) {
      ringing.set(build, "once");
      await ring(build).catch((error: Error) => warn(`${build} was not rung for: ${error.message}`));
      if (ringing.get(build) === "again") continue;
      ringing.delete(build);
      return;
    }
  };
  return {
    ring(build: BuildId): void {
      if (ringing.has(build)) ringing.set(build, "again");
      else void start(build);
    },
  };
}

/** At once, and then again and again, each time after the last one has ended. */
function every(ms: number, work: () => Promise<void>, warn: (message: string) => void): AsyncDisposable {
  const stop = new AbortController();
  const run = async () => {
    while (!stop.signal.aborted) {
      await work().catch((error: Error) => warn(`builds were not looked for: ${error.message}`));
      await sleep(ms, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
