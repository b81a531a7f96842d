import { SlipwayError } from "@slipway/contract";
import { type Kysely, sql, type Transaction } from "kysely";
import type { Database } from "./open.ts";

/** Migrations of one part of the database, oldest first. Their number is the version. A released one never changes. */
export interface MigrationSet {
  readonly part: string;
  readonly migrations: readonly Migration[];
}

export type Migration = (trx: Transaction<object>) => Promise<void>;

/** Brings a part up to date, each version in one transaction. Refuses a version that this program does not know. */
export async function migrate(database: Database, { part, migrations }: MigrationSet): Promise<void> {
  const queries = database.queries.withTables<VersionTables>();
  let version = await inTurn(queries, database, (trx) => begin(trx, part));
  while (version < migrations.length) {
    version = await inTurn(queries, database, async (trx) => {
      const current = await readVersion(trx, part);
      const migration = migrations[current];
      if (migration === undefined) return current;
      await migration(trx as unknown as Transaction<object>);
      await trx
        .updateTable("schemaVersions")
        .set({ version: current + 1 })
        .where("part", "=", part)
        .execute();
      return current + 1;
    });
  }
  if (version <= migrations.length) return;
  const message = `the database's ${part} is of version ${version}; this program knows ${migrations.length}`;
  throw new SlipwayError("database_newer", message);
}

type VersionTables = {
  schemaVersions: { part: string; version: number };
};

async function begin(trx: Transaction<VersionTables>, part: string): Promise<number> {
  await trx.schema
    .createTable("schemaVersions")
    .ifNotExists()
    .addColumn("part", "text", (column) => column.primaryKey())
    .addColumn("version", "integer", (column) => column.notNull())
    .execute();
  await trx
    .insertInto("schemaVersions")
    .values({ part, version: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return await readVersion(trx, part);
}

async function readVersion(trx: Transaction<VersionTables>, part: string): Promise<number> {
  const row = await trx
    .selectFrom("schemaVersions")
    .select("version")
    .where("part", "=", part)
    .executeTakeFirstOrThrow();
  return row.version;
}

/** An arbitrary number that names the lock among others of the same Postgres. */
const migrationLock = 7_541_002;

/** Lets servers that start together migrate one after another. */
async function inTurn<T>(
  queries: Kysely<VersionTables>,
  { kind }: Database,
  work: (trx: Transaction<VersionTables>) => Promise<T>,
): Promise<T> {
  return await queries.transaction().execute(async (trx) => {
    if (kind === "postgres") await sql`select pg_advisory_xact_lock(${sql.lit(migrationLock)})`.execute(trx);
    return await work(trx);
  });
}
