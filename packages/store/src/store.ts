import type { Store } from "@slipway/engine";
import { sql } from "kysely";
import { createActions } from "./actions.ts";
import { createBuilds } from "./builds.ts";
import { migrate } from "./database/migrate.ts";
import type { Database } from "./database/open.ts";
import { createEvents } from "./events.ts";
import { createLeases } from "./leases.ts";
import { createLedger } from "./ledger.ts";
import { createNotes } from "./notes.ts";
import { createPatterns } from "./patterns.ts";
import { storeMigrations } from "./schema/migrations.ts";
import type { Clock } from "./schema/queries.ts";
import type { Tables } from "./schema/rows.ts";

/**
 * Brings the database up to date first. The caller closes the database. Leases go by the database's clock, which all
 * servers share; tests may pass their own.
 */
export async function openStore(database: Database, clock: Clock, leaseClock?: Clock): Promise<Store> {
  await migrate(database, storeMigrations);
  const queries = database.queries.withTables<Tables>();
  const leaseTime = () => (leaseClock === undefined ? database.now : sql<number>`cast(${leaseClock.now()} as bigint)`);
  return {
    builds: createBuilds(queries, clock, leaseTime),
    events: createEvents(queries, clock),
    leases: createLeases(queries, leaseTime),
    ledger: createLedger(queries, clock),
    notes: createNotes(queries),
    actions: createActions(queries),
    patterns: createPatterns(queries),
  };
}
