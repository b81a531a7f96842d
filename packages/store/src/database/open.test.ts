import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type MigrationSet, migrate } from "./migrate.ts";
import { openDatabase } from "./open.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-database-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const file = () => join(directory, "state/slipway.db");
const open = () => openDatabase({ url: `file:${file()}` });

const notes: MigrationSet = {
  part: "notes",
  migrations: [
    async (trx) => {
      await trx.schema.createTable("notes").addColumn("text", "text").execute();
    },
    async (trx) => {
      await sql`insert into notes (text) values ('second')`.execute(trx);
    },
  ],
};

test("migrations run once, whoever starts", async () => {
  await using first = open();
  await using second = open();
  await Promise.all([migrate(first, notes), migrate(second, notes), migrate(first, notes)]);
  const { rows } = await sql`select text from notes`.execute(first.queries);
  expect(rows).toEqual([{ text: "second" }]);
});

test("a migration that fails leaves nothing of itself, and the ones before it", async () => {
  await using database = open();
  const failing: MigrationSet = {
    part: "notes",
    migrations: [
      ...notes.migrations,
      async (trx) => {
        await trx.schema.createTable("half").addColumn("text", "text").execute();
        throw new Error("in the middle");
      },
    ],
  };
  await expect(migrate(database, failing)).rejects.toThrow("in the middle");
  await expect(sql`select * from half`.execute(database.queries)).rejects.toThrow("no such table");
  await migrate(database, notes);
  expect((await sql`select text from notes`.execute(database.queries)).rows).toHaveLength(1);
});

test("a database of a newer version is refused, and stays as it is", async () => {
  await using database = open();
  await migrate(database, notes);
  const older = { part: "notes", migrations: notes.migrations.slice(0, 1) };
  await expect(migrate(database, older)).rejects.toMatchObject({ code: "database_newer" });
  await migrate(database, notes);
});

test("parts of a database have versions of their own", async () => {
  await using database = open();
  await migrate(database, notes);
  await migrate(database, { part: "other", migrations: [] });
});

test("the file is its owner's alone, durable, and shared by write-ahead log", async () => {
  await using database = open();
  const pragma = async (name: string) =>
    Object.values((await sql.raw<object>(`pragma ${name}`).execute(database.queries)).rows[0] ?? {})[0];
  expect(await pragma("journal_mode")).toBe("wal");
  expect(await pragma("synchronous")).toBe(2);
  expect(await pragma("foreign_keys")).toBe(1);
  await migrate(database, notes);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(statSync(`${file()}-wal`).mode & 0o777).toBe(0o600);
});

test("a reader's transaction does not wait for a writer, and sees one moment", async () => {
  await using database = open();
  await migrate(database, notes);
  using other = new DatabaseSync(file());
  other.exec("begin immediate; insert into notes values ('third')");
  await database.queries
    .transaction()
    .setAccessMode("read only")
    .execute(async (trx) => {
      expect((await sql`select * from notes`.execute(trx)).rows).toHaveLength(1);
      other.exec("commit");
      expect((await sql`select * from notes`.execute(trx)).rows).toHaveLength(1);
    });
  expect((await sql`select * from notes`.execute(database.queries)).rows).toHaveLength(2);
});

test("who waits for another's transaction lets its process go on", async () => {
  await using first = open();
  await using second = open();
  await migrate(first, notes);
  const insert = sql`insert into notes values ('x')`;
  const both = [first, second].map(({ queries }) =>
    queries.transaction().execute(async (trx) => {
      await insert.execute(trx);
      await new Promise((resolve) => setImmediate(resolve));
      await insert.execute(trx);
    }),
  );
  await Promise.all([...both, insert.execute(second.queries)]);
  expect((await sql`select * from notes`.execute(first.queries)).rows).toHaveLength(6);
});

test("a transaction that fails is rolled back, and the connection goes on", async () => {
  await using database = open();
  await migrate(database, notes);
  const failed = database.queries.transaction().execute(async (trx) => {
    await sql`insert into notes values ('lost')`.execute(trx);
    await sql`insert into nowhere values (1)`.execute(trx);
  });
  await expect(failed).rejects.toThrow("no such table");
  expect((await sql`select * from notes`.execute(database.queries)).rows).toHaveLength(1);
});

test.each([
  [
    "a file that is no database",
    () => writeFileSync(join(directory, "x"), "x".repeat(4096)),
    () => `file:${directory}/x`,
  ],
  ["a directory", () => undefined, () => `file:${directory}`],
  ["a path below a file", () => writeFileSync(join(directory, "x"), ""), () => `file:${directory}/x/y.db`],
])("%s is refused as unavailable", async (_, prepare, url) => {
  prepare();
  await using database = openDatabase({ url: url() });
  await expect(migrate(database, notes)).rejects.toMatchObject({ code: "database_unavailable" });
});

test.each(["", "file:", "mysql://user:secret@host/name", "slipway.db", "postgres", "postgres://[", ":"])(
  "%j is no address of a database, and is not repeated",
  (url) => {
    expect(() => openDatabase({ url })).toThrow(expect.objectContaining({ code: "invalid_request" }));
    expect(() => openDatabase({ url })).not.toThrow("secret");
  },
);
