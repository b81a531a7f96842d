import {
  controlMessageSchema,
  endSchema,
  type NumberedEvent,
  numberedEventSchema,
  type RunId,
  runIdSchema,
  SlipwayError,
} from "@slipway/contract";
import { z } from "zod";
import type { Database } from "./database/open.ts";
import { accept } from "./schema/codec.ts";
import type { Queries, Trx } from "./schema/queries.ts";
import type { Tables } from "./schema/rows.ts";

const orderSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("control"), message: controlMessageSchema }),
  z.strictObject({ type: z.literal("end"), end: endSchema }),
]);
type Order = Readonly<z.output<typeof orderSchema>>;

/** Events per read. An event has up to 256 KiB. */
const readAtOnce = 64;

/** What runs reported and were told, for the gateway's run channel. The store's migrations create the tables. */
export function createRunLog(database: Database) {
  const queries = database.queries.withTables<Tables>();
  return {
    append: (run: RunId, events: readonly NumberedEvent[]) =>
      queries.transaction().execute((trx) => append(trx, accept(runIdSchema, run), events)),
    next: async (run: RunId) => (await readLog(queries, run)).events + 1,
    bytes: async (run: RunId) => (await readLog(queries, run)).bytes,
    async holds(run: RunId, claimed: readonly NumberedEvent[]) {
      const [first] = claimed;
      if (first === undefined) return true;
      const stored = await readTexts(queries, run, first.sequence - 1, claimed.length);
      return claimed.every((event, index) => toText(event) === stored[index]);
    },
    async *read(run: RunId, after: number) {
      const { events } = await readLog(queries, run);
      for (let at = after; at < events; ) {
        const texts = await readTexts(queries, run, at, Math.min(readAtOnce, events - at));
        for (const text of texts) yield numberedEventSchema.parse(JSON.parse(text));
        at += texts.length;
      }
    },
    async orders(run: RunId) {
      const kept = queries.selectFrom("runOrders").select("order").where("run", "=", accept(runIdSchema, run));
      const orders = (await kept.orderBy("number").execute()).map(({ order }) => orderSchema.parse(JSON.parse(order)));
      return {
        messages: orders.flatMap((order) => (order.type === "control" ? [order.message] : [])),
        end: orders.find((order) => order.type === "end")?.end,
      };
    },
    order: (run: RunId, order: Order) =>
      queries.transaction().execute((trx) => addOrder(trx, accept(runIdSchema, run), accept(orderSchema, order))),
    /** It remembers nothing. */
    release(_run: RunId) {},
  };
}

async function append(trx: Trx, run: RunId, events: readonly NumberedEvent[]): Promise<void> {
  const [first] = events;
  if (first === undefined) return;
  const rows = events.map((event) => ({ run, sequence: event.sequence, event: toText(event) }));
  const bytes = rows.reduce((sum, { event }) => sum + Buffer.byteLength(event), 0);
  await holdLog(trx, run);
  const moved = await trx
    .updateTable("runLogs")
    .set((column) => ({ events: column("events", "+", rows.length), bytes: column("bytes", "+", bytes) }))
    .where("run", "=", run)
    .where("events", "=", first.sequence - 1)
    .executeTakeFirst();
  const inOrder = rows.every(({ sequence }, index) => sequence === first.sequence + index);
  if (moved.numUpdatedRows === 0n || !inOrder) {
    throw new SlipwayError("internal", `event ${first.sequence} and those with it do not follow on what ${run} has`);
  }
  await trx.insertInto("runEvents").values(rows).execute();
}

async function addOrder(trx: Trx, run: RunId, order: Order): Promise<void> {
  await holdLog(trx, run);
  const { last } = await trx
    .selectFrom("runOrders")
    .select((read) => read.fn.max("number").as("last"))
    .where("run", "=", run)
    .executeTakeFirstOrThrow();
  await trx
    .insertInto("runOrders")
    .values({ run, number: (last ?? 0) + 1, order: JSON.stringify(order) })
    .execute();
}

/** Writers of a run's log take turns at this row. */
async function holdLog(trx: Trx, run: RunId): Promise<void> {
  await trx
    .insertInto("runLogs")
    .values({ run, events: 0, bytes: 0 })
    .onConflict((conflict) => conflict.column("run").doUpdateSet({ run }))
    .execute();
}

async function readLog(queries: Queries, run: RunId) {
  const log = queries.selectFrom("runLogs").selectAll().where("run", "=", accept(runIdSchema, run));
  return (await log.executeTakeFirst()) ?? { events: 0, bytes: 0 };
}

async function readTexts(queries: Queries, run: RunId, after: number, count: number): Promise<string[]> {
  const rows = await queries
    .selectFrom("runEvents")
    .select("event")
    .where("run", "=", run)
    .where("sequence", ">", after)
    .orderBy("sequence")
    .limit(count)
    .execute();
  return rows.map(({ event }) => event);
}

/** The schema fixes the order of keys, so equal content is equal text. */
function toText(event: NumberedEvent): string {
  return JSON.stringify(event);
}
