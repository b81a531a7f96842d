import type { BuildId } from "@slipway/contract";
import { z } from "zod";
import { allEvents } from "./all-events.ts";
import type { CrashWorld } from "./crash-world.ts";

const lastEvents = 20;

type StuckIn = Pick<CrashWorld, "store" | "restateAdminUrl">;

/** All that says why a build does not move: its state, its lease, what happened last, and what Restate has of it. */
export async function tellStuck(set: StuckIn, id: BuildId): Promise<string> {
  const { store } = set;
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
    `Restate: ${await invocationsOf(set, id).catch((error: Error) => error.message)}`,
  ].join("\n  ");
}

const rowsSchema = z.object({ rows: z.array(z.json()) });
const answerMs = 5000;

async function invocationsOf(set: StuckIn, id: BuildId): Promise<string> {
  const query = `select id, target_service_name, status, retry_count, next_retry_at, last_failure, modified_at
    from sys_invocation where target_service_key = '${id}'`;
  const response = await fetch(new URL("/query", set.restateAdminUrl), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ query }),
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await response.text();
  return response.ok ? JSON.stringify(rowsSchema.parse(JSON.parse(text)).rows) : text;
}
