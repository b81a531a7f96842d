import { mkdir } from "node:fs/promises";
import { join } from "node:path";
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
import type { RunLog, RunOrders } from "../ports/ports.ts";
import { type IndexedLines, openIndexedLines } from "./indexed-lines.ts";

const readBytes = 256 * 1024;

/** Two files of JSON lines per run: its events, one line per sequence number, and the host's orders. */
export async function openRunLog(directory: string): Promise<RunLog> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const events = createFiles((run) => join(directory, `${run}.events.jsonl`));
  const orders = createFiles((run) => join(directory, `${run}.orders.jsonl`));
  return {
    async append(run, fresh) {
      const file = await events.of(run);
      if (fresh.some(({ sequence }, index) => sequence !== file.count + index + 1)) {
        throw new SlipwayError("internal", `events of ${run} do not follow number ${file.count}`);
      }
      await events.append(run, fresh.map(toLine));
    },
    next: async (run) => (await events.of(run)).count + 1,
    bytes: async (run) => (await events.of(run)).bytes,
    async holds(run, claimed) {
      const [first] = claimed;
      if (first === undefined) return true;
      const file = await events.of(run);
      const wanted = claimed.map(toLine);
      const length = wanted.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      const stored = await file.read(first.sequence - 1, length);
      return wanted.every((line, index) => line === stored[index]);
    },
    async *read(run, after) {
      const file = await events.of(run);
      for (let at = after; at < file.count; ) {
        const lines = await file.read(at, readBytes);
        for (const line of lines) yield numberedEventSchema.parse(JSON.parse(line));
        at += lines.length;
      }
    },
    async orders(run) {
      const lines = await (await orders.of(run)).read(0, Number.POSITIVE_INFINITY);
      return collect(lines.map((line) => orderSchema.parse(JSON.parse(line))));
    },
    order: async (run, order) => orders.append(run, [JSON.stringify(order)]),
    release(run) {
      events.release(run);
      orders.release(run);
    },
  };
}

/** The schema fixes the order of keys: equal content is equal text. */
function toLine(event: NumberedEvent): string {
  return JSON.stringify(event);
}

const orderSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("control"), message: controlMessageSchema }),
  z.strictObject({ type: z.literal("end"), end: endSchema }),
]);

function collect(orders: readonly z.output<typeof orderSchema>[]): RunOrders {
  return {
    messages: orders.flatMap((order) => (order.type === "control" ? [order.message] : [])),
    end: orders.find((order) => order.type === "end")?.end,
  };
}

/** One file per run, opened on first use. */
function createFiles(pathOf: (run: RunId) => string) {
  const opened = new Map<RunId, Promise<IndexedLines>>();
  const of = (run: RunId): Promise<IndexedLines> => {
    const known = opened.get(run);
    if (known !== undefined) return known;
    if (!runIdSchema.safeParse(run).success) throw new SlipwayError("invalid_request", `${run} is not a run id`);
    const file = openIndexedLines(pathOf(run));
    opened.set(run, file);
    file.catch(() => opened.delete(run));
    return file;
  };
  return {
    of,
    async append(run: RunId, lines: readonly string[]): Promise<void> {
      try {
        await (await of(run)).append(lines);
      } catch (error) {
        opened.delete(run);
        throw error;
      }
    },
    release: (run: RunId) => void opened.delete(run),
  };
}
