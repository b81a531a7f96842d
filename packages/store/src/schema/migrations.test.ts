import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { driver, leaseMs, openTestStore } from "../conformance/context.ts";
import { migrate } from "../database/migrate.ts";
import { openDatabase } from "../database/open.ts";
import { storeMigrations } from "./migrations.ts";

/** How many migrations there were before disputes. */
const beforeDisputes = 5;

test("a database from before there were disputes keeps its builds, which then may have some", async () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-migrations-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const url = `file:${join(directory, "slipway.db")}`;
  const id = newId("bld");
  {
    await using database = openDatabase({ url });
    const { part, migrations } = storeMigrations;
    await migrate(database, { part, migrations: migrations.slice(0, beforeDisputes) });
    const { queries } = database;
    await expect(sql`select * from disputes`.execute(queries)).rejects.toThrow("no such table");
    await sql`insert into builds values (${id}, 'user', 'shop', 'new', 'a shop', 0, 'running', null, 4, 1, 1, 2, 3, null, '{}')`.execute(
      queries,
    );
    await sql`insert into leases values (${id}, null, 0, 0, 0, null)`.execute(queries);
    await sql`insert into events values (${id}, 1, 2, 'decision', 'build.created', null, '{}')`.execute(queries);
  }
  await using opened = await openTestStore(url);
  const { builds, leases } = opened.store;
  expect(await builds.get(id)).toMatchObject({ request: "a shop", status: "running", turn: 4 });
  expect(await builds.records(id, "disputes")).toEqual([]);
  await leases.take(id, driver, leaseMs);
  const at = { task: "cart", criterion: "adds", checkIndex: 0, step: 3 };
  const open = { status: "judge", by: "judge", because: null, replacement: null, openedAt: 4, endedAt: null } as const;
  const disputes = [{ build: id, number: 1, ...at, ...open }];
  await builds.apply(id, driver, { turn: 4, through: 1, records: { disputes }, events: [] });
  expect(await builds.records(id, "disputes")).toEqual(disputes);
});
