import type { Client, Config, InArgs, Transaction } from "@libsql/client/http";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { rejectStreaming } from "./connection.ts";
import { tursoFailure } from "./failures.ts";

/** libSQL over HTTP only: its client for files loses acknowledged writes after a busy error. */
export function tursoDialect(url: string, authToken: string | undefined): Dialect {
  return {
    createAdapter: () => new TursoAdapter(),
    createDriver: () => createDriver({ url, intMode: "number", ...(authToken && { authToken }) }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** Each transaction is a stream of its own on the server. */
class TursoAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

interface TursoConnection extends DatabaseConnection {
  transaction: Transaction | undefined;
}

function createDriver(config: Config): Driver {
  let client: Client;
  const end = async (connection: DatabaseConnection, how: "commit" | "rollback") => {
    const transaction = (connection as TursoConnection).transaction;
    (connection as TursoConnection).transaction = undefined;
    await transaction?.[how]().catch(rethrow);
  };
  return {
    // Loaded on first use.
    async init() {
      client = (await import("@libsql/client/http")).createClient(config);
    },
    acquireConnection: async () => createConnection(client),
    async beginTransaction(connection, { accessMode }) {
      const mode = accessMode === "read only" ? "read" : "write";
      (connection as TursoConnection).transaction = await client.transaction(mode).catch(rethrow);
    },
    commitTransaction: (connection) => end(connection, "commit"),
    rollbackTransaction: (connection) => end(connection, "rollback"),
    releaseConnection: async (connection) => (connection as TursoConnection).transaction?.close(),
    destroy: async () => client.close(),
  };
}

function createConnection(client: Client): TursoConnection {
  return {
    transaction: undefined,
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      const statement = { sql, args: parameters as InArgs };
      const { rows, columns, rowsAffected } = await (this.transaction ?? client).execute(statement).catch(rethrow);
      if (columns.length === 0) return { rows: [], numAffectedRows: BigInt(rowsAffected) };
      return { rows: rows.map((row) => ({ ...row })) as R[] };
    },
    streamQuery: rejectStreaming,
  };
}

function rethrow(error: unknown): never {
  throw tursoFailure(error);
}
