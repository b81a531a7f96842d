import type { BuildId } from "@slipway/contract";
import type { BuildEvent, Store } from "@slipway/engine";
import { expect } from "vitest";
import type { SimulationSettings } from "../simulated/fate.ts";
import { createManualClock } from "../simulated/manual-clock.ts";
import type { WorldRecord } from "../simulated/testing/world-record.ts";
import { allEvents } from "./all-events.ts";
import { openWorld } from "./world.ts";

/** What is true of every build that has ended, whatever happened to who drove it. */
export async function examineBuild(store: Store, record: WorldRecord, id: BuildId): Promise<void> {
  const events = await allEvents(store, id);
  const { lastEvent, endedAt } = await store.builds.get(id);
  expect(endedAt, id).not.toBeNull();
  expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: lastEvent }, (_, index) => index + 1));
  const keys = events.flatMap(({ key }) => (key === null ? [] : [key]));
  expect(new Set(keys).size, id).toBe(keys.length);
  const decided = decisionsOf(events);
  expect(new Set(decided).size, id).toBe(decided.length);
  await examineMoney(store, record, id);
}

/** The ledger has what was spent, and nothing is set aside any more. */
async function examineMoney(store: Store, record: WorldRecord, id: BuildId): Promise<void> {
  const { spentMicroUsd, reservedMicroUsd } = await store.ledger.balance(id);
  const spent = record.spentMicroUsd.get(id) ?? 0;
  expect({ spentMicroUsd, reservedMicroUsd }, id).toEqual({ spentMicroUsd: spent, reservedMicroUsd: 0 });
  const costs = await store.ledger.costs(id, "attempt");
  expect(costs.reduce((sum, cost) => sum + cost.spentMicroUsd, 0)).toBe(spent);
}

const decidedOnce = [
  "attempt.started",
  "attempt.respawned",
  "attempt.closed",
  "task.merged",
  "task.failed",
  "build.ended",
];

function decisionsOf(events: readonly BuildEvent[]): string[] {
  return events
    .filter(({ type, source }) => source === "decision" && decidedOnce.includes(type))
    .map(({ type, data: { task = "", attempt = "", respawn = "" } }) => [type, task, attempt, respawn].join(" "));
}

/** How a build has ended, as far as chance has no part in it. */
export async function endOf(store: Store, id: BuildId) {
  const { status, reason } = await store.builds.get(id);
  const { tasks } = await store.builds.state(id);
  const of = (wanted: string) => tasks.filter((task) => task.status === wanted).map((task) => task.id);
  const started = (await allEvents(store, id)).filter(({ type }) => type === "attempt.started");
  const attempts = started.map(({ data: { task, attempt } }) => `${task} ${attempt}`).sort();
  return { status, reason, merged: of("merged"), failed: of("failed"), attempts };
}

/** The same build in a world of the same seed, driven by one process that nothing happens to. */
export async function endWithoutFaults(world: SimulationSettings, id: BuildId) {
  await using calm = await openWorld({ clock: createManualClock(), steps: world });
  await calm.start({ id });
  await calm.run();
  return await endOf(calm.store, id);
}
