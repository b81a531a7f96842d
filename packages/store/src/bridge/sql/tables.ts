import type { BridgeTopic, BuildId } from "@slipway/contract";
import type { Transaction } from "kysely";
import type { MigrationSet } from "../../database/migrate.ts";

/** A type, not an interface: Kysely wants an index of tables. */
export type BridgeTables = {
  /** One row per build. Every writer of the build locks it first, so offsets become visible in order. */
  bridgeLogs: { build: BuildId; lastOffset: number; claimedPaths: number };
  bridgeMessages: {
    build: BuildId;
    offset: number;
    topic: BridgeTopic;
    key: string;
    sender: string;
    at: number;
    encoding: "json" | "brotli";
    body: string;
  };
  bridgeConsumers: { build: BuildId; consumer: string; position: number; triedOffset: number; tries: number };
  bridgeDeadLetters: { build: BuildId; consumer: string; offset: number; tries: number; reason: string; at: number };
  /** A row outlives its lease: it holds the path's highest token. */
  bridgeClaims: { build: BuildId; path: string; owner: string; token: number; expiresAt: number };
};

export const bridgeMigrations: MigrationSet = { part: "bridge", migrations: [createTables] };

async function createTables(trx: Transaction<object>): Promise<void> {
  await trx.schema
    .createTable("bridgeLogs")
    .addColumn("build", "text", (column) => column.primaryKey())
    .addColumn("lastOffset", "bigint", (column) => column.notNull())
    .addColumn("claimedPaths", "integer", (column) => column.notNull())
    .execute();
  await trx.schema
    .createTable("bridgeMessages")
    .addColumn("build", "text", (column) => column.notNull())
    .addColumn("offset", "bigint", (column) => column.notNull())
    .addColumn("topic", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("sender", "text", (column) => column.notNull())
    .addColumn("at", "bigint", (column) => column.notNull())
    .addColumn("encoding", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("bridgeMessagesByOffset", ["build", "offset"])
    .addUniqueConstraint("bridgeMessagesByKey", ["build", "key"])
    .execute();
  await trx.schema
    .createTable("bridgeConsumers")
    .addColumn("build", "text", (column) => column.notNull())
    .addColumn("consumer", "text", (column) => column.notNull())
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("triedOffset", "bigint", (column) => column.notNull())
    .addColumn("tries", "integer", (column) => column.notNull())
    .addPrimaryKeyConstraint("bridgeConsumersByName", ["build", "consumer"])
    .execute();
  await trx.schema
    .createTable("bridgeDeadLetters")
    .addColumn("build", "text", (column) => column.notNull())
    .addColumn("consumer", "text", (column) => column.notNull())
    .addColumn("offset", "bigint", (column) => column.notNull())
    .addColumn("tries", "integer", (column) => column.notNull())
    .addColumn("reason", "text", (column) => column.notNull())
    .addColumn("at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("bridgeDeadLettersByOffset", ["build", "consumer", "offset"])
    .execute();
  await trx.schema
    .createTable("bridgeClaims")
    .addColumn("build", "text", (column) => column.notNull())
    .addColumn("path", "text", (column) => column.notNull())
    .addColumn("owner", "text", (column) => column.notNull())
    .addColumn("token", "bigint", (column) => column.notNull())
    .addColumn("expiresAt", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("bridgeClaimsByPath", ["build", "path"])
    .execute();
}
