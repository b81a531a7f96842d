import { type BuildId, SlipwayError } from "@slipway/contract";
import {
  type BuildRecord,
  type Builds,
  type NewBuild,
  type NewEvent,
  newBuildSchema,
  type RecordKind,
  type Turn,
} from "@slipway/engine";
import { appendEvents } from "./events.ts";
import { holdLease, type LeaseTime } from "./leases.ts";
import { openAccount, setBudget } from "./ledger.ts";
import { putRecords, readRecords } from "./records.ts";
import { accept, toRow } from "./schema/codec.ts";
import { type Clock, pageOf, type Queries, readOnce, type Trx } from "./schema/queries.ts";
import { buildRow } from "./schema/rows.ts";
import { readState, requireBuild } from "./state.ts";

export function createBuilds(queries: Queries, clock: Clock, leaseTime: LeaseTime): Builds {
  return {
    create: (build, budgetMicroUsd, event) =>
      queries.transaction().execute((trx) => create(trx, { build, budgetMicroUsd, event, now: clock.now() })),
    get: (build) => requireBuild(queries, build),
    async list({ account, project, statuses, before, limit }) {
      let query = queries.selectFrom("builds").selectAll();
      if (account !== undefined) query = query.where("account", "=", account);
      if (project !== undefined) query = query.where("project", "=", project);
      if (statuses !== undefined) query = query.where("status", "in", [...statuses]);
      if (before !== undefined) query = query.where("id", "<", before);
      const rows = await query.orderBy("id", "desc").limit(pageOf({ limit }).limit).execute();
      return rows.map((row) => buildRow.parse(row));
    },
    state: (build) => readOnce(queries, (trx) => readState(trx, build)),
    records: (build, kind, page) => readRecords(queries, build, kind, page),
    apply: (build, by, turn) =>
      queries.transaction().execute(async (trx) => {
        await holdLease(trx, build, by, leaseTime());
        return await apply(trx, build, turn, clock.now());
      }),
  };
}

interface Creation {
  readonly build: NewBuild;
  readonly budgetMicroUsd: number;
  readonly event: NewEvent;
  readonly now: number;
}

async function create(trx: Trx, { build, budgetMicroUsd, event, now }: Creation): Promise<BuildRecord> {
  const accepted = accept(newBuildSchema, build);
  const record: BuildRecord = {
    ...accepted,
    status: "planning",
    reason: null,
    turn: 0,
    appliedThrough: 0,
    lastEvent: 0,
    createdAt: now,
    updatedAt: now,
    endedAt: null,
  };
  const row = toRow(buildRow, record);
  const { numInsertedOrUpdatedRows: inserted } = await trx
    .insertInto("builds")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (inserted === 0n) return await requireSame(trx, accepted);
  const lease = { build: record.id, holder: null, generation: 0, leaseMs: 0, expiresAt: 0, bell: null };
  await trx.insertInto("leases").values(lease).execute();
  await openAccount(trx, { id: record.id, build: null, budgetMicroUsd });
  const lastEvent = await appendEvents(trx, record.id, [event], { source: "report", at: now });
  return { ...record, lastEvent };
}

async function requireSame(trx: Trx, wanted: NewBuild): Promise<BuildRecord> {
  const stored = await requireBuild(trx, wanted.id);
  const same = (["account", "project", "mode", "request"] as const).every((field) => stored[field] === wanted[field]);
  if (same) return stored;
  throw new SlipwayError("idempotency_conflict", `${wanted.id} is another build`);
}

async function apply(trx: Trx, build: BuildId, turn: Turn, now: number) {
  const columns = toRow(changeRow, turn.build ?? {});
  const moved = await trx
    .updateTable("builds")
    .set({ ...columns, turn: turn.turn + 1, appliedThrough: turn.through })
    .where("id", "=", build)
    .where("turn", "=", turn.turn)
    .where("appliedThrough", "<=", turn.through)
    .where("lastEvent", ">=", turn.through)
    .executeTakeFirst();
  if (moved.numUpdatedRows === 0n) {
    throw new SlipwayError("build_moved", `${build} is not at turn ${turn.turn} and event ${turn.through}`);
  }
  if (turn.budgetMicroUsd !== undefined) await setBudget(trx, build, turn.budgetMicroUsd);
  for (const [kind, records] of Object.entries(turn.records ?? {})) {
    await putRecords(trx, build, kind as RecordKind, records);
  }
  return { lastEvent: await appendEvents(trx, build, turn.events, { source: "decision", at: now }) };
}

const changeRow = buildRow.pick({ status: true, reason: true, priority: true, endedAt: true, details: true }).partial();
