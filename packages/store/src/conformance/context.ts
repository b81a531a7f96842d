import { type BuildId, newId } from "@slipway/contract";
import type { AttemptRecord, LeaseHolder, NewBuild, Store, TaskRecord } from "@slipway/engine";
import { openDatabase } from "../database/open.ts";
import { openStore } from "../store.ts";
import type { OpenedStore, TestClock } from "./subject.ts";

export async function openTestStore(url: string): Promise<OpenedStore> {
  const database = openDatabase({ url });
  const clock = testClock();
  const store = await openStore(database, clock, clock);
  return { url, database, store, clock, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
}

function testClock(): TestClock {
  let nowMs = 1_000_000;
  return {
    now: () => nowMs,
    advance(ms) {
      nowMs += ms;
    },
  };
}

export const budgetMicroUsd = 1_000_000;
export const driver: LeaseHolder = { holder: "server-1", generation: 1 };
export const leaseMs = 60_000;

export function newBuild(change: Partial<NewBuild> = {}): NewBuild {
  return { id: newId("bld"), account: "user", project: "shop", mode: "new", request: "a shop", ...change };
}

/** A build that `driver` may drive, at turn 0 with one event. */
export async function drivenBuild(store: Store, change?: Partial<NewBuild>): Promise<BuildId> {
  const { id } = await store.builds.create(newBuild(change), budgetMicroUsd, { type: "build.requested" });
  await store.leases.take(id, driver, leaseMs);
  return id;
}

export function task(build: BuildId, id: string, change: Partial<TaskRecord> = {}): TaskRecord {
  const plain = { status: "pending", component: "backend", dependencies: [], level: null, attempts: 0 } as const;
  return { build, id, ...plain, dependencies: [], reason: null, details: {}, ...change };
}

export function attempt(build: BuildId, change: Partial<AttemptRecord> = {}): AttemptRecord {
  const nothing = {
    reason: null,
    sandbox: null,
    run: null,
    phase: null,
    score: null,
    heartbeatAt: null,
    endedAt: null,
  };
  return { id: newId("att"), build, task: "cart", status: "working", startedAt: 1, details: {}, ...nothing, ...change };
}
