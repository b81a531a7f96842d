import { type BuildId, SlipwayError } from "@slipway/contract";
import type { BuildRecords, RecordKind, RecordPage } from "@slipway/engine";
import type { Kysely } from "kysely";
import type { z } from "zod";
import { toRow } from "./schema/codec.ts";
import { pageOf, type Queries, type Trx } from "./schema/queries.ts";
import { recordRows } from "./schema/rows.ts";

/** The key of each kind within its build, and when a record is final. `first`: later records of the key are ignored. */
const kinds: {
  readonly [K in RecordKind]: { readonly key: readonly string[]; readonly final?: "always" | "hash" | "first" };
} = {
  intents: { key: [], final: "hash" },
  checks: { key: ["criterion"], final: "always" },
  plans: { key: ["round"], final: "always" },
  tasks: { key: ["id"] },
  attempts: { key: ["id"] },
  sandboxes: { key: ["id"] },
  checkpoints: { key: ["id"], final: "first" },
  candidates: { key: ["id"] },
  gateResults: { key: ["candidate", "gate", "round"], final: "always" },
  merges: { key: ["candidate"], final: "always" },
  disputes: { key: ["number"] },
};

/** Tables whose names are known only at run time. */
type Row = Record<string, string | number | null>;
type AnyTables = Record<string, Row>;

/** Rows per statement. */
const batch = 500;

export async function putRecords<K extends RecordKind>(
  trx: Trx,
  build: BuildId,
  kind: K,
  records: readonly BuildRecords[K][],
): Promise<void> {
  const rows = records.map((record) => {
    if (record.build !== build) throw new SlipwayError("invalid_request", `a record of ${record.build} in ${build}`);
    return toRow(recordRows[kind], record as never) as Row;
  });
  for (let from = 0; from < rows.length; from += batch) await put(trx, kind, rows.slice(from, from + batch));
  if (["always", "hash"].includes(kinds[kind].final ?? "")) for (const row of rows) await requireSame(trx, kind, row);
}

export async function readRecords<K extends RecordKind>(
  queries: Queries | Trx,
  build: BuildId,
  kind: K,
  page?: RecordPage,
): Promise<BuildRecords[K][]> {
  const { offset, limit } = pageOf(page);
  let query = anyTable(queries)
    .selectFrom(kind as string)
    .selectAll()
    .where("build", "=", build);
  for (const column of kinds[kind].key) query = query.orderBy(column, page?.isReversed ? "desc" : "asc");
  return toRecords(kind, await query.limit(limit).offset(offset).execute());
}

export function toRecords<K extends RecordKind>(kind: K, rows: readonly unknown[]): BuildRecords[K][] {
  const schema: z.ZodType = recordRows[kind];
  return rows.map((row) => schema.parse(row) as BuildRecords[K]);
}

async function put(trx: Trx, kind: RecordKind, rows: readonly Row[]): Promise<void> {
  const { key, final } = kinds[kind];
  await anyTable(trx)
    .insertInto(kind)
    .values(rows as Row[])
    .onConflict((conflict) => {
      // A final record may also conflict by another key, such as its position.
      if (final === "always" || final === "first") return conflict.doNothing();
      const columns = Object.keys(rows[0] ?? {});
      const update = conflict
        .columns(["build", ...key])
        .doUpdateSet((row) => Object.fromEntries(columns.map((column) => [column, row.ref(`excluded.${column}`)])));
      return final === undefined ? update : update.where(`${kind}.${final}`, "is", null);
    })
    .execute();
}

async function requireSame(trx: Trx, kind: RecordKind, row: Row): Promise<void> {
  let query = anyTable(trx)
    .selectFrom(kind)
    .selectAll()
    .where("build", "=", row["build"] as string);
  for (const column of kinds[kind].key) query = query.where(column, "=", row[column] as string);
  const stored = await query.executeTakeFirst();
  if (stored !== undefined && Object.entries(row).every(([column, value]) => stored[column] === value)) return;
  const key = kinds[kind].key.map((column) => row[column]).join(" ");
  throw new SlipwayError("record_final", `another record of ${kind} stands where ${key} would`);
}

function anyTable(queries: Queries | Trx) {
  return queries as unknown as Kysely<AnyTables>;
}
