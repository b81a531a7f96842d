import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drivenBuild, openTestStore } from "./conformance/context.ts";
import { spawnReporter } from "./conformance/reporter.ts";
import { describeStore } from "./conformance/suite.ts";

let directory: string;
let databases = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-store-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const newFile = () => join(directory, `${++databases}.db`);

describeStore("SQLite", { createDatabase: async () => `file:${newFile()}`, seesDeath: true });

test("two processes write as much as they are told, while a third holds the lock for ten seconds", async () => {
  const file = newFile();
  await using opened = await openTestStore(`file:${file}`);
  const build = await drivenBuild(opened.store);
  const writers = ["a", "b"].map((name) =>
    spawnReporter({ url: opened.url, build, name, calls: 1000, eventsPerCall: 1, held: true }),
  );
  await Promise.all(writers.map((writer) => writer.said("ready")));
  {
    using holder = new DatabaseSync(file, { timeout: 60_000 });
    holder.exec("begin immediate");
    for (const writer of writers) writer.begin();
    await Promise.all([delay(10_000), ...writers.map((writer) => writer.said("busy"))]);
    holder.exec("commit");
  }
  await Promise.all(writers.map((writer) => writer.ended()));
  const acknowledged = writers.flatMap((writer) => writer.acknowledged);
  const refused = writers.reduce((sum, writer) => sum + writer.busy, 0);
  expect(acknowledged.length + refused).toBe(2000);
  expect(refused).toBeGreaterThanOrEqual(2);
  using reader = new DatabaseSync(file);
  const rows = reader.prepare("select sequence from events where key is not null order by sequence").all();
  expect(rows.map(({ sequence }) => sequence)).toEqual(acknowledged.toSorted((a, b) => a - b));
}, 300_000);
