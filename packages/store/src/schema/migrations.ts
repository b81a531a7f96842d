import { type CreateTableBuilder, type Kysely, sql, type Transaction } from "kysely";
import type { MigrationSet } from "../database/migrate.ts";

export const storeMigrations: MigrationSet = {
  part: "store",
  migrations: [createTables, addBellsAndPlans, dropTournaments, addGateParts, addWorkNotes, addDisputes, addCompute],
};

/** `text?` may be null. A number other than `real` is a time, an amount of money or a count. */
type ColumnType = "text" | "text?" | "whole" | "whole?" | "real?";
type Columns = Readonly<Record<string, ColumnType>>;

async function createTables(trx: Transaction<object>): Promise<void> {
  await createBuilds(trx);
  await createWork(trx);
  await createCandidates(trx);
  await createLedger(trx);
  await createLogs(trx);
}

async function addBellsAndPlans(trx: Transaction<object>): Promise<void> {
  await trx.schema.alterTable("leases").addColumn("bell", "text").execute();
  await createOfBuild(trx, "plans", ["round"], { round: "whole", intentHash: "text", tasks: "text" });
}

async function dropTournaments(trx: Transaction<object>): Promise<void> {
  await trx.schema.dropTable("tournamentResults").execute();
}

async function addGateParts(trx: Transaction<object>): Promise<void> {
  const results = trx.schema.alterTable("gateResults");
  for (const name of ["parts", "artefacts"])
    await results.addColumn(name, "text", (column) => column.notNull().defaultTo("[]")).execute();
  await results.addColumn("costMicroUsd", "bigint", (column) => column.notNull().defaultTo(0)).execute();
}

async function addWorkNotes(trx: Transaction<object>): Promise<void> {
  await createOfBuild(trx, "workNotes", ["kind", "name"], { kind: "text", name: "text", note: "text" });
}

async function addDisputes(trx: Transaction<object>): Promise<void> {
  await createOfBuild(trx, "disputes", ["number"], {
    number: "whole",
    task: "text",
    criterion: "text",
    checkIndex: "whole",
    step: "whole",
    status: "text",
    by: "text",
    because: "text?",
    replacement: "text",
    openedAt: "whole",
    endedAt: "whole?",
  });
}

async function addCompute(trx: Transaction<object>): Promise<void> {
  const entries = trx.schema.alterTable("ledgerEntries");
  for (const name of ["sandbox", "terms"]) await entries.addColumn(name, "text").execute();
  await index(trx, "ledgerEntries", ["sandbox"]);
  const open = trx.schema.createIndex("ledger_entries_compute").on("ledgerEntries").column("reservedAt");
  await open.where(sql<boolean>`settled_at is null and terms is not null`).execute();
}

async function createBuilds(trx: Transaction<object>): Promise<void> {
  await create(trx, "builds", ["id"], {
    id: "text",
    account: "text",
    project: "text",
    mode: "text",
    request: "text",
    priority: "whole",
    status: "text",
    reason: "text?",
    turn: "whole",
    appliedThrough: "whole",
    lastEvent: "whole",
    createdAt: "whole",
    updatedAt: "whole",
    endedAt: "whole?",
    details: "text",
  });
  await index(trx, "builds", ["account", "id"]);
  await index(trx, "builds", ["project", "id"]);
  await index(trx, "builds", ["status", "id"]);
  await createOfBuild(trx, "leases", [], {
    holder: "text?",
    generation: "whole",
    leaseMs: "whole",
    expiresAt: "whole",
  });
  await index(trx, "leases", ["expiresAt"]);
  await createOfBuild(trx, "events", ["sequence"], {
    sequence: "whole",
    at: "whole",
    source: "text",
    type: "text",
    key: "text?",
    data: "text",
  });
  // Nulls are never equal: only keys make events unique.
  await trx.schema.createIndex("events_build_key").on("events").columns(["build", "key"]).unique().execute();
}

async function createWork(trx: Transaction<object>): Promise<void> {
  await createOfBuild(trx, "intents", [], { hash: "text?", intent: "text" });
  await createOfBuild(trx, "checks", ["criterion"], { criterion: "text", intentHash: "text", check: "text" });
  await createOfBuild(trx, "tasks", ["id"], {
    id: "text",
    status: "text",
    component: "text",
    dependencies: "text",
    level: "whole?",
    attempts: "whole",
    reason: "text?",
    details: "text",
  });
  await createOfBuild(trx, "attempts", ["id"], {
    id: "text",
    task: "text",
    status: "text",
    reason: "text?",
    sandbox: "text?",
    run: "text?",
    phase: "text?",
    score: "real?",
    startedAt: "whole",
    heartbeatAt: "whole?",
    endedAt: "whole?",
    details: "text",
  });
  await index(trx, "attempts", ["build", "task"]);
  await index(trx, "attempts", ["run"]);
  await indexOpen(trx, "attempts");
  await createOfBuild(trx, "sandboxes", ["id"], {
    id: "text",
    account: "text",
    project: "text",
    provider: "text",
    providerId: "text?",
    host: "text?",
    config: "text",
    status: "text",
    reason: "text?",
    tasks: "text",
    score: "real?",
    costMicroUsd: "whole",
    createdAt: "whole",
    activeAt: "whole",
    endedAt: "whole?",
  });
  await index(trx, "sandboxes", ["account", "id"]);
  await index(trx, "sandboxes", ["project", "id"]);
  await index(trx, "sandboxes", ["provider", "providerId"]);
  await indexOpen(trx, "sandboxes");
  await createOfBuild(trx, "checkpoints", ["id"], {
    id: "text",
    attempt: "text?",
    sandbox: "text?",
    snapshot: "text?",
    phase: "text",
    createdAt: "whole",
    details: "text",
  });
  await index(trx, "checkpoints", ["build", "attempt", "createdAt", "id"]);
}

async function createCandidates(trx: Transaction<object>): Promise<void> {
  await createOfBuild(trx, "candidates", ["id"], {
    id: "text",
    task: "text",
    attempt: "text",
    status: "text",
    reason: "text?",
    commit: "text",
    position: "whole",
    createdAt: "whole",
    endedAt: "whole?",
    details: "text",
  });
  await indexOpen(trx, "candidates");
  await createOfBuild(trx, "gateResults", ["candidate", "gate", "round"], {
    candidate: "text",
    gate: "text",
    round: "whole",
    verdict: "text",
    score: "real?",
    durationMs: "whole",
    findings: "text",
    endedAt: "whole",
  });
  await createOfBuild(trx, "merges", ["candidate"], {
    candidate: "text",
    task: "text",
    position: "whole",
    commit: "text",
    parent: "text",
    mergedAt: "whole",
  });
  await trx.schema.createIndex("merges_position").on("merges").columns(["build", "position"]).unique().execute();
  await createOfBuild(trx, "tournamentResults", ["task", "round"], {
    task: "text",
    round: "whole",
    winner: "text?",
    rationale: "text",
    scores: "text",
    costMicroUsd: "whole",
    endedAt: "whole",
  });
}

async function createLedger(trx: Transaction<object>): Promise<void> {
  const purpose: Columns = { build: "text?", task: "text?", attempt: "text?", agent: "text?", gate: "text?" };
  await create(trx, "accounts", ["id"], {
    id: "text",
    ...purpose,
    budgetMicroUsd: "whole",
    spentMicroUsd: "whole",
    reservedMicroUsd: "whole",
  });
  await create(trx, "ledgerEntries", ["request"], {
    request: "text",
    account: "text",
    holder: "text",
    kind: "text",
    ...purpose,
    reservedMicroUsd: "whole",
    spentMicroUsd: "whole?",
    provider: "text?",
    end: "text?",
    estimated: "whole?",
    role: "text?",
    model: "text?",
    usage: "text?",
    reservedAt: "whole",
    settledAt: "whole?",
  });
  await index(trx, "ledgerEntries", ["build"]);
  await index(trx, "ledgerEntries", ["account"]);
  const open = trx.schema.createIndex("ledger_entries_open").on("ledgerEntries").column("holder");
  await open.where(sql.ref("settledAt"), "is", null).execute();
}

async function createLogs(trx: Transaction<object>): Promise<void> {
  await create(trx, "agentActions", ["run", "sequence"], {
    build: "text",
    attempt: "text?",
    run: "text",
    sequence: "whole",
    agent: "text",
    action: "text",
    ok: "whole?",
    at: "whole",
    details: "text",
  });
  await index(trx, "agentActions", ["build", "run", "sequence"]);
  await create(trx, "patterns", ["project", "signature"], {
    project: "text",
    signature: "text",
    error: "text",
    fix: "text",
    attempt: "text",
    learntAt: "whole",
  });
  await create(trx, "runLogs", ["run"], { run: "text", events: "whole", bytes: "whole" });
  await create(trx, "runEvents", ["run", "sequence"], { run: "text", sequence: "whole", event: "text" });
  await create(trx, "runOrders", ["run", "number"], { run: "text", number: "whole", order: "text" });
}

/** A table whose key begins with the build. */
async function createOfBuild(
  db: Kysely<object>,
  table: string,
  key: readonly string[],
  columns: Columns,
): Promise<void> {
  await create(db, table, ["build", ...key], { build: "text", ...columns }, true);
}

async function create(
  db: Kysely<object>,
  table: string,
  key: readonly string[],
  columns: Columns,
  ofBuild = false,
): Promise<void> {
  let builder: CreateTableBuilder<string, string> = db.schema.createTable(table);
  for (const [name, type] of Object.entries(columns)) {
    builder = builder.addColumn(name, sqlTypes[type], (column) => (type.endsWith("?") ? column : column.notNull()));
  }
  builder = builder.addPrimaryKeyConstraint(`${table}Key`, key as string[]);
  if (ofBuild) builder = builder.addForeignKeyConstraint(`${table}Build`, ["build"], "builds", ["id"]);
  await builder.execute();
}

const sqlTypes = {
  text: "text",
  "text?": "text",
  whole: "bigint",
  "whole?": "bigint",
  "real?": "double precision",
} as const;

async function index(db: Kysely<object>, table: string, columns: readonly string[]): Promise<void> {
  await db.schema
    .createIndex([table, ...columns].join("_"))
    .on(table)
    .columns(columns as string[])
    .execute();
}

/** Finds rows that have not ended without reading those that have. */
async function indexOpen(db: Kysely<object>, table: string): Promise<void> {
  const open = db.schema.createIndex(`${table}_open`).on(table).column("build");
  await open.where(sql.ref("endedAt"), "is", null).execute();
}
