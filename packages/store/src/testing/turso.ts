import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { json } from "node:stream/consumers";
import { whenFree } from "../database/when-free.ts";

/** What libSQL's client asks: Hrana over HTTP, version 2, as far as the client uses it. */
interface Statement {
  readonly sql?: string;
  readonly sql_id?: number;
  readonly args?: readonly { readonly type: string; readonly value?: string | number }[];
}
interface Step {
  readonly condition?: { readonly type: "ok"; readonly step: number } | null;
  readonly stmt: Statement;
}
type Request =
  | { readonly type: "execute"; readonly stmt: Statement }
  | { readonly type: "batch"; readonly batch: { readonly steps: readonly Step[] } }
  | { readonly type: "store_sql"; readonly sql_id: number; readonly sql: string }
  | { readonly type: "close_sql"; readonly sql_id: number }
  | { readonly type: "close" };

interface Stream {
  readonly database: DatabaseSync;
  readonly texts: Map<number, string>;
}

export interface TestTurso extends AsyncDisposable {
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>;
}

/** A stand-in for Turso: SQLite files behind its protocol. A stream has a connection of its own until it is closed. */
export async function startTurso(): Promise<TestTurso> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-turso-"));
  const streams = new Map<string, Stream>();
  const server = createServer(async (request, response) => {
    const [, name = ""] = (request.url ?? "").split("/");
    const { baton, requests } = (await json(request)) as { baton: string | null; requests: readonly Request[] };
    const stream = streams.get(baton ?? "") ?? openStream(join(directory, name));
    const results = [];
    for (const each of requests) results.push(await answer(stream, each));
    streams.delete(baton ?? "");
    const isOpen = requests.at(-1)?.type !== "close";
    const next = isOpen ? randomUUID() : null;
    if (next === null) stream.database.close();
    else streams.set(next, stream);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ baton: next, base_url: null, results }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  let databases = 0;
  return {
    createDatabase: async () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${++databases}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      for (const { database } of streams.values()) database.close();
      rmSync(directory, { recursive: true });
    },
  };
}

function openStream(path: string): Stream {
  const database = new DatabaseSync(path, { timeout: 0 });
  database.exec("pragma journal_mode = wal");
  return { database, texts: new Map() };
}

async function answer(stream: Stream, request: Request) {
  try {
    return { type: "ok", response: { type: request.type, result: await perform(stream, request) } };
  } catch (error) {
    return { type: "error", error: toError(error) };
  }
}

async function perform(stream: Stream, request: Request): Promise<unknown> {
  if (request.type === "store_sql") stream.texts.set(request.sql_id, request.sql);
  if (request.type === "close_sql") stream.texts.delete(request.sql_id);
  if (request.type === "execute") return await execute(stream, request.stmt);
  if (request.type !== "batch") return undefined;
  const results: unknown[] = [];
  const errors: unknown[] = [];
  for (const [index, { condition, stmt }] of request.batch.steps.entries()) {
    results[index] = null;
    errors[index] = null;
    if (condition && results[condition.step] === null) continue;
    try {
      results[index] = await execute(stream, stmt);
    } catch (error) {
      errors[index] = toError(error);
    }
  }
  return { step_results: results, step_errors: errors };
}

async function execute({ database, texts }: Stream, { sql, sql_id, args = [] }: Statement) {
  const text = sql ?? texts.get(sql_id ?? -1) ?? "";
  return await whenFree(() => {
    const statement = database.prepare(text);
    statement.setReadBigInts(true);
    statement.setReturnArrays(true);
    const cols = statement.columns().map(({ name }) => ({ name }));
    const values = args.map(toValue);
    if (cols.length === 0) {
      return { cols, rows: [], affected_row_count: Number(statement.run(...values).changes), last_insert_rowid: null };
    }
    const rows = (statement.all(...values) as unknown as unknown[][]).map((row) => row.map(fromValue));
    return { cols, rows, affected_row_count: 0, last_insert_rowid: null };
  });
}

function toValue({ type, value }: { type: string; value?: string | number }): SQLInputValue {
  if (type === "null" || value === undefined) return null;
  return type === "integer" ? BigInt(value) : value;
}

function fromValue(value: unknown) {
  if (value === null) return { type: "null" };
  if (typeof value === "bigint") return { type: "integer", value: String(value) };
  return typeof value === "number" ? { type: "float", value } : { type: "text", value };
}

function toError(error: unknown) {
  const { message, errcode } = error as { message: string; errcode?: number };
  return { message, code: errcode === 5 ? "SQLITE_BUSY" : "SQLITE_ERROR" };
}
