import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { newId } from "@slipway/contract";
import { openDatabase, openStore } from "@slipway/store";
import { median, type Report } from "./measure.ts";

const rounds = 5;
const builds = 20;
const reportsPerBuild = 10;
const eventsPerReport = 20;

/** `store_events_per_s`: 20 builds report at once to one SQLite file, 20 events at a time; each report is durable. */
export async function run(report: Report): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-store-"));
  try {
    await using database = openDatabase({ url: `file:${join(directory, "slipway.db")}` });
    const store = await openStore(database, { now: () => Date.now() });
    const rates = [];
    for (let round = 0; round < rounds; round++) {
      const ids = Array.from({ length: builds }, () => newId("bld"));
      for (const id of ids) {
        const build = { id, account: "bench", project: "bench", mode: "new", request: "bench" } as const;
        await store.builds.create(build, 0, { type: "build.requested" });
      }
      const start = performance.now();
      await Promise.all(ids.map((id) => reportMany((events) => store.events.report(id, events))));
      const seconds = (performance.now() - start) / 1000;
      rates.push((builds * reportsPerBuild * eventsPerReport) / seconds);
    }
    const value = median(rates);
    report({
      name: "store_events_per_s",
      value,
      unit: "1/s",
      ours: value,
      baseline: null,
      n: rounds,
      bound: { atLeast: 1000 },
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function reportMany(send: (events: { type: string; key: string; data: { text: string } }[]) => Promise<number>) {
  for (let call = 0; call < reportsPerBuild; call++) {
    const event = (index: number) => ({
      type: "attempt.reported",
      key: `${call}-${index}`,
      data: { text: "x".repeat(200) },
    });
    await send(Array.from({ length: eventsPerReport }, (_, index) => event(index)));
  }
}
