import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { newId } from "@slipway/contract";
import { openDatabase, openStore } from "@slipway/store";
import { median, type Report } from "./measure.ts";

const rounds = 10;
const eventsPerRound = 400;

interface ReportedEvent {
  readonly type: string;
  readonly key: string;
  readonly data: { readonly text: string };
}

/** Appends events and is done when they are on disk. */
type Append = (events: readonly ReportedEvent[]) => unknown;

/**
 * `store_events_per_s`, `store_batched_events_per_s`: one build is told its events one after the other, or twenty at a
 * time. The baseline puts the same rows into a table of plain SQLite, as durably.
 */
export async function storeEvents(report: Report): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-store-"));
  parts.defer(() => rmSync(directory, { recursive: true }));
  const database = parts.use(openDatabase({ url: `file:${join(directory, "slipway.db")}` }));
  const store = await openStore(database, { now: () => Date.now() });
  const id = newId("bld");
  const build = { id, account: "bench", project: "bench", mode: "new", request: "bench" } as const;
  await store.builds.create(build, 0, { type: "build.requested" });
  const ours: Append = (events) => store.events.report(id, events);
  const baseline = parts.adopt(openPlain(join(directory, "plain.db")), ({ close }) => close()).append;
  for (const [name, size, atLeast] of [
    ["store_events_per_s", 1, 100],
    ["store_batched_events_per_s", 20, 1000],
  ] as const) {
    const rates = { ours: [] as number[], baseline: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      rates.ours.push(await rateOf(ours, `${name}-${round}`, size));
      rates.baseline.push(await rateOf(baseline, `${name}-${round}`, size));
    }
    const value = median(rates.ours);
    const figure = { name, value, unit: "1/s", ours: value, baseline: median(rates.baseline), n: rounds };
    report({ ...figure, bound: { atLeast } });
  }
}

/** Events per second. */
async function rateOf(append: Append, prefix: string, size: number): Promise<number> {
  const start = performance.now();
  for (let sent = 0; sent < eventsPerRound; sent += size) {
    await append(Array.from({ length: size }, (_, index) => eventOf(`${prefix}-${sent + index}`)));
  }
  return eventsPerRound / ((performance.now() - start) / 1000);
}

function eventOf(key: string): ReportedEvent {
  return { type: "attempt.reported", key, data: { text: "x".repeat(200) } };
}

function openPlain(path: string): { readonly append: Append; close(): void } {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma synchronous = full");
  database.exec("create table events (sequence integer primary key, type text, key text unique, data text)");
  const insert = database.prepare("insert into events (type, key, data) values (?, ?, ?)");
  return {
    append(events) {
      database.exec("begin immediate");
      for (const { type, key, data } of events) insert.run(type, key, JSON.stringify(data));
      database.exec("commit");
    },
    close: () => database.close(),
  };
}
