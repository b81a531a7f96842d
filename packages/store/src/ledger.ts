import { type BuildId, SlipwayError } from "@slipway/contract";
import {
  type Account,
  accountSchema,
  type BuildLedger,
  type Cost,
  type CostDimension,
  computeTermsSchema,
  type LedgerSettlement,
  type OpenCompute,
  type Reservation,
  reservationSchema,
  settlementSchema,
} from "@slipway/engine";
import { type ExpressionBuilder, sql } from "kysely";
import { z } from "zod";
import { accept, jsonText, toRow } from "./schema/codec.ts";
import type { Clock, Queries, Trx } from "./schema/queries.ts";
import { entryRow, type Tables } from "./schema/rows.ts";

const amountSchema = z.int().min(0);

export function createLedger(queries: Queries, clock: Clock): BuildLedger {
  const settle = (settlement: LedgerSettlement) =>
    queries.transaction().execute((trx) => settleOnce(trx, settlement, clock.now()));
  return {
    open: (account) => queries.transaction().execute((trx) => openAccount(trx, account)),
    reserve: (reservation) => allOrNothing(queries, (trx) => reserve(trx, reservation, clock.now())),
    extend: (request, microUsd) => allOrNothing(queries, (trx) => extend(trx, request, accept(amountSchema, microUsd))),
    settle,
    async abandon(holder, build) {
      const all = queries
        .selectFrom("ledgerEntries")
        .select(["request", "reservedMicroUsd"])
        .where("holder", "=", holder)
        .where("settledAt", "is", null)
        .where("terms", "is", null);
      const open = await (build === undefined ? all : all.where(spentFor(build))).execute();
      const lost = { provider: "unknown", end: "lost", estimated: true } as const;
      let settled = 0;
      for (const { request, reservedMicroUsd } of open) {
        if (await settle({ request, microUsd: reservedMicroUsd, ...lost })) settled++;
      }
      return settled;
    },
    async place(request, sandbox) {
      await queries.updateTable("ledgerEntries").set({ sandbox }).where("request", "=", request).execute();
    },
    openCompute: (prefix = "") => readOpenCompute(queries, prefix),
    async payerOf(sandbox) {
      const entries = queries.selectFrom("ledgerEntries").select("account").where("sandbox", "=", sandbox);
      return (await entries.limit(1).executeTakeFirst())?.account;
    },
    async spentOn(sandbox) {
      const { rows } = await sql<{ spentMicroUsd: number }>`
        select ${whole(sql`sum(spent_micro_usd)`)} as "spentMicroUsd" from ledger_entries where sandbox = ${sandbox}
      `.execute(queries);
      return rows[0]?.spentMicroUsd ?? 0;
    },
    async balance(account) {
      const row = await queries
        .selectFrom("accounts")
        .select(["budgetMicroUsd", "spentMicroUsd", "reservedMicroUsd"])
        .where("id", "=", account)
        .executeTakeFirst();
      return row ?? { budgetMicroUsd: 0, spentMicroUsd: 0, reservedMicroUsd: 0 };
    },
    async left(account) {
      const { rows } = await sql<{ leftMicroUsd: number }>`
        select ${whole(sql`min(budget_micro_usd - spent_micro_usd - reserved_micro_usd)`)} as "leftMicroUsd" from accounts
        where id = ${account} or id in (select build from accounts where id = ${account})
      `.execute(queries);
      return Math.max(0, rows[0]?.leftMicroUsd ?? 0);
    },
    costs: (build, dimension) => readCosts(queries, build, dimension),
  };
}

export async function openAccount(trx: Trx, account: Account): Promise<void> {
  const accepted = accept(accountSchema, account);
  await trx
    .insertInto("accounts")
    .values({ ...accepted, spentMicroUsd: 0, reservedMicroUsd: 0 })
    .onConflict((conflict) =>
      conflict
        .column("id")
        .doUpdateSet({ budgetMicroUsd: accepted.budgetMicroUsd })
        .where("accounts.budgetMicroUsd", "<", accepted.budgetMicroUsd),
    )
    .execute();
}

export async function setBudget(trx: Trx, account: string, microUsd: number): Promise<void> {
  const budgetMicroUsd = accept(amountSchema, microUsd);
  await trx.updateTable("accounts").set({ budgetMicroUsd }).where("id", "=", account).execute();
}

async function reserve(trx: Trx, reservation: Reservation, now: number): Promise<boolean> {
  const { request, account, holder, kind, microUsd, terms, sandbox } = accept(reservationSchema, reservation);
  const payer = await trx.selectFrom("accounts").selectAll().where("id", "=", account).executeTakeFirst();
  if (payer === undefined) return false;
  const known = await trx.selectFrom("ledgerEntries").selectAll().where("request", "=", request).executeTakeFirst();
  if (known !== undefined) {
    if (known.account === account && known.reservedMicroUsd === microUsd && known.settledAt === null) return true;
    throw new SlipwayError("idempotency_conflict", `request ${request} is in the ledger already`);
  }
  if (!(await setAside(trx, payer, microUsd))) return false;
  const { id: _id, budgetMicroUsd: _budget, ...purpose } = payer;
  const nothingYet = { spentMicroUsd: null, provider: null, end: null, estimated: null, role: null, model: null };
  await trx
    .insertInto("ledgerEntries")
    .values({
      ...purpose,
      ...nothingYet,
      usage: null,
      settledAt: null,
      request,
      account,
      holder,
      kind,
      sandbox,
      ...toRow(entryRow.pick({ terms: true }), { terms }),
      reservedMicroUsd: microUsd,
      reservedAt: now,
    })
    .execute();
  return true;
}

async function extend(trx: Trx, request: string, microUsd: number): Promise<boolean> {
  const entry = await trx
    .updateTable("ledgerEntries")
    .set((column) => ({ reservedMicroUsd: column("reservedMicroUsd", "+", microUsd) }))
    .where("request", "=", request)
    .where("settledAt", "is", null)
    .returning(["account", "build"])
    .executeTakeFirst();
  return entry !== undefined && (await setAside(trx, { id: entry.account, build: entry.build }, microUsd));
}

/** The build's account comes first, always, so that two transactions never deadlock. */
async function setAside(trx: Trx, payer: { id: string; build: string | null }, microUsd: number): Promise<boolean> {
  for (const id of payers(payer)) {
    const { numUpdatedRows } = await trx
      .updateTable("accounts")
      .set((column) => ({ reservedMicroUsd: column("reservedMicroUsd", "+", microUsd) }))
      .where("id", "=", id)
      .where(sql<boolean>`spent_micro_usd + reserved_micro_usd + ${microUsd} <= budget_micro_usd`)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
  }
  return true;
}

async function settleOnce(trx: Trx, settlement: LedgerSettlement, now: number): Promise<boolean> {
  const { request, microUsd, ...told } = accept(settlementSchema, settlement);
  const entry = await trx
    .updateTable("ledgerEntries")
    .set({ ...toRow(toldRow, told), spentMicroUsd: microUsd, settledAt: now })
    .where("request", "=", request)
    .where("settledAt", "is", null)
    .returning(["account", "build", "reservedMicroUsd"])
    .executeTakeFirst();
  if (entry === undefined) return false;
  for (const id of payers({ id: entry.account, build: entry.build })) {
    await trx
      .updateTable("accounts")
      .set((column) => ({
        reservedMicroUsd: column("reservedMicroUsd", "-", entry.reservedMicroUsd),
        spentMicroUsd: column("spentMicroUsd", "+", microUsd),
      }))
      .where("id", "=", id)
      .execute();
  }
  return true;
}

const toldRow = entryRow.pick({ provider: true, end: true, estimated: true, role: true, model: true, usage: true });

function payers({ id, build }: { readonly id: string; readonly build: string | null }): string[] {
  return build === null ? [id] : [build, id];
}

/** A transaction that is rolled back when its work returns false. */
async function allOrNothing(queries: Queries, work: (trx: Trx) => Promise<boolean>): Promise<boolean> {
  const refused = Symbol("refused");
  try {
    await queries.transaction().execute(async (trx) => {
      if (!(await work(trx))) throw refused;
    });
    return true;
  } catch (error) {
    if (error === refused) return false;
    throw error;
  }
}

function whole(amount: ReturnType<typeof sql>) {
  return sql<number>`cast(coalesce(${amount}, 0) as bigint)`;
}

async function readCosts(queries: Queries, build: BuildId, dimension: CostDimension): Promise<readonly Cost[]> {
  return await queries
    .selectFrom("ledgerEntries")
    .select([
      `${dimension} as of`,
      whole(sql`sum(spent_micro_usd)`).as("spentMicroUsd"),
      whole(sql`sum(case when settled_at is null then reserved_micro_usd else 0 end)`).as("reservedMicroUsd"),
      whole(sql`count(*)`).as("requests"),
    ])
    .where(spentFor(build))
    .groupBy(dimension)
    .orderBy(dimension)
    .execute();
}

async function readOpenCompute(queries: Queries, prefix: string): Promise<readonly OpenCompute[]> {
  const rows = await queries
    .selectFrom("ledgerEntries")
    .select(["request", "account", "build", "holder", "sandbox", "terms", "reservedMicroUsd", "reservedAt"])
    .where("settledAt", "is", null)
    .where("terms", "is not", null)
    .where(sql<boolean>`substr(request, 1, ${prefix.length}) = ${prefix}`)
    .orderBy("reservedAt")
    .orderBy("request")
    .execute();
  return rows.map((row) => openComputeRow.parse(row));
}

const openComputeRow = entryRow
  .pick({
    request: true,
    account: true,
    build: true,
    holder: true,
    sandbox: true,
    reservedMicroUsd: true,
    reservedAt: true,
  })
  .extend({ terms: jsonText(computeTermsSchema) });

/** The build's own account, and those that belong to it. */
function spentFor(build: BuildId) {
  return (is: ExpressionBuilder<Tables, "ledgerEntries">) =>
    is.or([is("build", "=", build), is("account", "=", build)]);
}
