import { SlipwayError } from "@slipway/contract";
import {
  CamelCasePlugin,
  type Dialect,
  type Expression,
  HandleEmptyInListsPlugin,
  Kysely,
  replaceWithNoncontingentExpression,
  sql,
} from "kysely";
import { postgresDialect } from "./postgres.ts";
import { sqliteDialect } from "./sqlite.ts";
import { tursoDialect } from "./turso.ts";

export type DatabaseKind = "sqlite" | "postgres" | "turso";

/** One database. Each user names its tables with `withTables`. Columns are camelCase in code and snake_case in SQL. */
export interface Database extends AsyncDisposable {
  readonly kind: DatabaseKind;
  readonly queries: Kysely<object>;
  /** Milliseconds of the database's own clock, within a query. */
  readonly now: Expression<number>;
}

export interface DatabaseAddress {
  /** `file:<path>`, `postgres://...`, or `libsql://...` for Turso. */
  readonly url: string;
  /** Of Turso. */
  readonly authToken?: string | undefined;
}

/** Does not connect yet. The first query shows what is wrong with the database. */
export function openDatabase(address: DatabaseAddress): Database {
  const { kind, dialect } = choose(address);
  // Postgres has no empty lists.
  const emptyLists = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression });
  const queries = new Kysely<object>({ dialect, plugins: [new CamelCasePlugin(), emptyLists] });
  return {
    kind,
    queries,
    now: kind === "postgres" ? postgresNow : sqliteNow,
    [Symbol.asyncDispose]: () => queries.destroy(),
  };
}

/** Not `now()`, which stands still during a transaction. */
const postgresNow = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
const sqliteNow = sql<number>`cast(unixepoch('subsec') * 1000 as integer)`;

function choose({ url, authToken }: DatabaseAddress): { kind: DatabaseKind; dialect: Dialect } {
  const scheme = url.slice(0, url.indexOf(":"));
  const path = url.slice("file:".length);
  if (scheme === "file" && path !== "") return { kind: "sqlite", dialect: sqliteDialect(path) };
  if (URL.canParse(url)) {
    if (scheme === "postgres" || scheme === "postgresql") return { kind: "postgres", dialect: postgresDialect(url) };
    if (["libsql", "https", "http"].includes(scheme)) return { kind: "turso", dialect: tursoDialect(url, authToken) };
  }
  // The address may hold a password: the error names only its scheme.
  const expected = "expected file:<path>, postgres://<host>/<name> or libsql://<host>";
  throw new SlipwayError("invalid_request", `${scheme === "" ? "no" : scheme} address of a database; ${expected}`);
}
