import { type Dialect, PostgresDialect, type PostgresPool } from "kysely";
import type pg from "pg";
import { postgresFailure } from "./failures.ts";

const connectTimeoutMs = 20_000;
const maxConnections = 10;
/** Ends the transaction of a process that was stopped in the middle of it. */
const idleInTransactionMs = 60_000;

export function postgresDialect(url: string): Dialect {
  return new PostgresDialect({ pool: () => openPool(url) });
}

/** Only who uses it waits for the client to be loaded. */
async function openPool(url: string): Promise<PostgresPool> {
  const { default: client } = await import("pg");
  /** Whole numbers are times, money and counts below 2^53. By default the driver returns them as text. */
  const getTypeParser: typeof client.types.getTypeParser = (oid, format) =>
    oid === client.types.builtins.INT8 ? Number : client.types.getTypeParser(oid, format);
  const pool = new client.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    types: { getTypeParser },
  });
  // A broken connection fails its query and leaves the pool. Without a listener its error would end the process.
  pool.on("error", () => {});
  pool.on("connect", (connection) => connection.on("error", () => {}));
  return withTypedFailures(pool);
}

function withTypedFailures(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch(rethrow);
      const query = (sql: string, parameters: unknown[]) => client.query(sql, parameters).catch(rethrow);
      return { query: query as never, release: (destroy) => client.release(destroy) };
    },
  };
}

function rethrow(error: unknown): never {
  throw postgresFailure(error);
}
