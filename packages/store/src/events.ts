import { type BuildId, SlipwayError } from "@slipway/contract";
import { type BuildEvent, type BuildEvents, type EventSource, type NewEvent, newEventSchema } from "@slipway/engine";
import { accept, toRow } from "./schema/codec.ts";
import { type Clock, pageOf, type Queries, type Trx } from "./schema/queries.ts";
import { eventRow } from "./schema/rows.ts";

/** Rows per statement. */
const batch = 500;

export function createEvents(queries: Queries, clock: Clock): BuildEvents {
  return {
    report: (build, events) =>
      queries.transaction().execute((trx) => appendEvents(trx, build, events, { source: "report", at: clock.now() })),
    async read(build, after, { source, limit } = {}) {
      let query = queries.selectFrom("events").selectAll().where("build", "=", build).where("sequence", ">", after);
      if (source !== undefined) query = query.where("source", "=", source);
      const rows = await query.orderBy("sequence").limit(pageOf({ limit }).limit).execute();
      return rows.map(toEvent);
    },
    async find(build, key) {
      const query = queries.selectFrom("events").selectAll().where("build", "=", build).where("key", "=", key);
      const row = await query.executeTakeFirst();
      return row && toEvent(row);
    },
  };
}

/**
 * Takes numbers from the build's row, which the transaction then holds. So they have no gaps, and a reader of one number
 * sees all lower ones. Returns the build's last number.
 */
export async function appendEvents(
  trx: Trx,
  build: BuildId,
  events: readonly NewEvent[],
  { source, at }: { readonly source: EventSource; readonly at: number },
): Promise<number> {
  const accepted = events.map((event) => accept(newEventSchema, event));
  const held = await trx
    .updateTable("builds")
    .set({ updatedAt: at })
    .where("id", "=", build)
    .returning("lastEvent")
    .executeTakeFirst();
  if (held === undefined) throw new SlipwayError("build_not_found", `there is no build ${build}`);
  const known = await knownKeys(trx, build, accepted);
  let last = held.lastEvent;
  const rows = [];
  for (const event of accepted) {
    if (event.key !== null && known.has(event.key)) continue;
    if (event.key !== null) known.add(event.key);
    rows.push(toRow(eventRow, { build, sequence: ++last, at, source, ...event }));
  }
  for (let from = 0; from < rows.length; from += batch) {
    await trx
      .insertInto("events")
      .values(rows.slice(from, from + batch))
      .execute();
  }
  if (rows.length > 0) await trx.updateTable("builds").set({ lastEvent: last }).where("id", "=", build).execute();
  return last;
}

async function knownKeys(trx: Trx, build: BuildId, events: readonly { key: string | null }[]): Promise<Set<string>> {
  const keys = events.flatMap(({ key }) => (key === null ? [] : [key]));
  const rows = await trx
    .selectFrom("events")
    .select("key")
    .where("build", "=", build)
    .where("key", "in", keys)
    .execute();
  return new Set(rows.map(({ key }) => key as string));
}

function toEvent(row: unknown): BuildEvent {
  const { build: _, ...event } = eventRow.parse(row);
  return event;
}
