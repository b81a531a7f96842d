import type { BuildId } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { allEvents } from "./all-events.ts";

const lastEvents = 20;

/** All that says why a build does not move: its state, its lease, and what happened last. */
export async function tellStuck({ store }: { readonly store: Store }, id: BuildId): Promise<string> {
  const { build, tasks, attempts } = await store.builds.state(id);
  const { status, reason, turn, lastEvent, appliedThrough, details } = build;
  const waitedFor = new Set(attempts.map(({ task }) => task));
  const events = (await allEvents(store, id)).filter(
    ({ sequence, data }) => sequence > lastEvent - lastEvents || waitedFor.has(String(data["task"])),
  );
  return [
    `${id} ${JSON.stringify({ status, reason, turn, lastEvent, appliedThrough })}`,
    `details ${JSON.stringify(details)}`,
    `money ${JSON.stringify(await store.ledger.balance(id))}`,
    `lease ${JSON.stringify(await store.leases.find(id))}`,
    ...tasks.map((task) => `task ${task.id} ${task.status} attempts ${task.attempts} level ${task.level}`),
    ...attempts.map((attempt) => `attempt ${JSON.stringify(attempt)}`),
    ...events.map(({ sequence, at, type, data }) => `${sequence} ${at} ${type} ${JSON.stringify(data)}`),
  ].join("\n  ");
}
