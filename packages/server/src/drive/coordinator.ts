import { setTimeout as sleep } from "node:timers/promises";
import { type BuildId, defaultLeaseMs } from "@slipway/contract";
import { createFleet, createTick, maxPage, type Store, type Work } from "@slipway/engine";
import { createAdoption, type Driven } from "./adoption.ts";
import type { OpenDrive, TakeTurn } from "./drive.ts";
import type { Reports } from "./reports.ts";
import { openTimers } from "./timers.ts";

export { createReports, type Reports } from "./reports.ts";

export interface CoordinatorParts {
  readonly store: Store;
  readonly reports: Pick<Reports, "onRing">;
  /** Wakes builds for their turns. Default: timers of this process. */
  readonly openDrive?: OpenDrive | undefined;
  /** Carries out the decisions. */
  readonly work: Work;
  /** This server's name among those that share the store. */
  readonly name: string;
  /** The most sandboxes that work at the same time, over all builds. */
  readonly slots: number;
  readonly clock: CoordinatorClock;
  readonly leaseMs?: number | undefined;
  /** How often the coordinator looks for builds that nobody drives. */
  readonly sweepMs?: number | undefined;
  /** This server drives the build from now on, in this generation. */
  readonly onDrive?: ((build: BuildId, generation: number) => void) | undefined;
  /** A turn of the build has ended. */
  readonly onTurn?: ((build: BuildId) => void) | undefined;
  readonly warn: (message: string) => void;
}

/** `speed`: how much faster it runs than real time, in which timers wait. */
export interface CoordinatorClock {
  now(): number;
  readonly speed?: number;
}

/** Drives the builds of a store that no other server drives, until it is disposed of. */
export async function openCoordinator(parts: CoordinatorParts): Promise<AsyncDisposable> {
  const { store, reports, work, name, slots, clock, warn } = parts;
  const { openDrive = openTimers, leaseMs = defaultLeaseMs, sweepMs = 5000 } = parts;
  const driven: Driven = new Map();
  let isClosed = false;
  await using stack = new AsyncDisposableStack();
  // Last of all: another server may then take over at once.
  stack.defer(() => releaseAll(store, name, driven.keys()));

  const ring = createBells(async (build) => {
    if (isClosed) return;
    const { holder, bell, leftMs } = await store.leases.find(build);
    const isFree = holder === null || leftMs <= 0;
    const isOver = isFree && (await store.builds.get(build)).endedAt !== null;
    if (isClosed || isOver) return;
    if (isFree) await adopt(build);
    else if (bell !== null) await drive.ring(bell);
  }, warn);
  reports.onRing(ring);

  const fleet = createFleet(slots, (build) => ring(build as BuildId));
  const tick = createTick({ store, work, fleet, clock, leaseMs });
  const takeTurn: TakeTurn = async (build, by, bell) => {
    const turn = await tick(build, by, bell);
    parts.onTurn?.(build);
    if ((driven.get(build)?.generation ?? 0) <= by.generation) {
      if (turn.over) driven.delete(build);
      else driven.set(build, { generation: by.generation, turnAtMs: clock.now() });
    }
    return turn.over ? turn : { over: false, waitMs: turn.waitMs / (clock.speed ?? 1) };
  };
  const drive = stack.use(await openDrive({ name, warn, takeTurn }));
  const adopt = createAdoption({ ...parts, tick, drive, leaseMs, driven });

  /** Builds without a turn here for a whole lease: another server may have taken them. */
  const letGoOfLost = () => {
    for (const [build, { turnAtMs }] of driven) {
      if (clock.now() - turnAtMs <= leaseMs) continue;
      driven.delete(build);
      tick.forget(build);
    }
  };
  /** At first, only builds that this server held in its earlier life. */
  let holder: string | undefined = name;
  const adoptFree = async () => {
    const free = await store.leases.expired({ ...(holder && { holder }), limit: maxPage });
    const lost = holder === undefined ? free : free.filter((build) => !driven.has(build));
    if (lost.length < maxPage) holder = undefined;
    const tryAdopt = (build: BuildId) =>
      adopt(build).catch((error: Error) => warn(`Cannot drive ${build} yet: ${error.message}`));
    await Promise.all(lost.map(tryAdopt));
  };
  /** Builds with reports of other processes, or whose ring was lost. */
  const ringUnheard = async () => {
    for (const build of await store.leases.unheard(name)) ring(build);
  };
  const sweep = async () => {
    letGoOfLost();
    await adoptFree();
    await ringUnheard();
  };
  stack.use(every(sweepMs, sweep, warn));
  stack.defer(() => {
    isClosed = true;
  });
  return stack.move();
}

async function releaseAll(store: Store, name: string, builds: Iterable<BuildId>): Promise<void> {
  for (const build of builds) {
    const { holder, generation } = await store.leases.find(build);
    if (holder === name) await store.leases.release(build, { holder, generation });
  }
}

/** Runs the work at once, and again `ms` after each end. */
function every(ms: number, work: () => Promise<void>, warn: (message: string) => void): AsyncDisposable {
  const stop = new AbortController();
  const run = async () => {
    while (!stop.signal.aborted) {
      await work().catch((error: Error) => warn(`Cannot look for builds: ${error.message}`));
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

/** Rings for a build one ring at a time, and once more for all rings that arrive meanwhile. */
function createBells(ring: (build: BuildId) => Promise<void>, warn: (message: string) => void) {
  const ringing = new Map<BuildId, "once" | "again">();
  const start = async (build: BuildId) => {
    do {
      ringing.set(build, "once");
      await ring(build).catch((error: Error) => warn(`Cannot ring for ${build}: ${error.message}`));
    } while (ringing.get(build) === "again");
    ringing.delete(build);
  };
  return (build: BuildId): void => {
    if (ringing.has(build)) ringing.set(build, "again");
    else void start(build);
  };
}
