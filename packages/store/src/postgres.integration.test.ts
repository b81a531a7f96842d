import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { drivenBuild, openTestStore } from "./conformance/context.ts";
import { describeStore } from "./conformance/suite.ts";
import { openDatabase } from "./database/open.ts";
import { openStore } from "./store.ts";
import { startPostgres, type TestPostgres } from "./testing/postgres.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres?.[Symbol.asyncDispose]());

describeStore("Postgres", { createDatabase: () => postgres.createDatabase(), seesDeath: true });

test("servers that start at once bring an empty database up to date together", async () => {
  const url = await postgres.createDatabase();
  const stores = await Promise.all(Array.from({ length: 4 }, () => openTestStore(url)));
  await drivenBuild((stores[0] as (typeof stores)[0]).store);
  for (const opened of stores) {
    expect(await opened.store.builds.list({})).toHaveLength(1);
    await opened[Symbol.asyncDispose]();
  }
});

test("a connection that is cut fails what it was doing, and the next call gets another", async () => {
  await using opened = await openTestStore(await postgres.createDatabase());
  const build = await drivenBuild(opened.store);
  const cut = opened.database.queries.transaction().execute(async (trx) => {
    await sql`update builds set request = 'half'`.execute(trx);
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
  });
  await expect(cut).rejects.toMatchObject({ code: "database_unavailable" });
  expect(await opened.store.builds.get(build)).toMatchObject({ request: "a shop" });
});

test.each([
  ["where no server listens", () => "postgres://slipway@127.0.0.1:1/x"],
  ["of a host that has no address", () => "postgres://slipway@host.invalid/x"],
  ["of a database that is not there", async () => (await postgres.createDatabase()).replace("/test_", "/none_")],
])("an address %s is told as such", async (_, url) => {
  await using database = openDatabase({ url: await url() });
  await expect(openStore(database, { now: () => 0 })).rejects.toMatchObject({ code: "database_unavailable" });
});
