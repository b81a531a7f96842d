import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { rejectStreaming } from "./connection.ts";
import { sqliteFailure } from "./failures.ts";
import { whenFree } from "./when-free.ts";

const maxStatements = 500;

/** A file with one connection. Kysely hands it out to one user at a time. */
export function sqliteDialect(path: string): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => createDriver(path),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

function createDriver(path: string): Driver {
  let database: DatabaseSync | undefined;
  let connection: DatabaseConnection | undefined;
  const run = async (sql: string) => void (await opened(connection).executeQuery(CompiledQuery.raw(sql)));
  return {
    async init() {
      database = await openFile(path);
      connection = createConnection(database);
    },
    acquireConnection: async () => opened(connection),
    // A transaction that begins as a reader cannot become a writer once another one has written.
    beginTransaction: (_, { accessMode }) => run(accessMode === "read only" ? "begin" : "begin immediate"),
    commitTransaction: () => run("commit"),
    async rollbackTransaction() {
      // SQLite ends the transaction itself after some errors, such as a full disk.
      if (opened(database).isTransaction) await run("rollback");
    },
    releaseConnection: async () => {},
    destroy: async () => database?.close(),
  };
}

async function openFile(path: string): Promise<DatabaseSync> {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // SQLite gives the files beside it the same mode.
    writeFileSync(path, "", { flag: "a", mode: 0o600 });
    const database = new DatabaseSync(path, { timeout: 0 });
    try {
      const settings = "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on";
      await whenFree(() => database.exec(settings));
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    throw sqliteFailure(error, path);
  }
}

function createConnection(database: DatabaseSync): DatabaseConnection {
  const prepare = statementCache(database);
  return {
    async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
      try {
        return await whenFree(() => execute<R>(prepare(sql), parameters as readonly SQLInputValue[]));
      } catch (error) {
        throw sqliteFailure(error);
      }
    },
    streamQuery: rejectStreaming,
  };
}

function execute<R>(statement: StatementSync, values: readonly SQLInputValue[]): QueryResult<R> {
  if (statement.columns().length > 0) return { rows: statement.all(...values) as R[] };
  return { rows: [], numAffectedRows: BigInt(statement.run(...values).changes) };
}

/** Prepared statements by their text, least recently used ones dropped. */
function statementCache(database: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.delete(sql);
    statements.set(sql, statement);
    const [oldest] = statements.keys();
    if (statements.size > maxStatements && oldest !== undefined) statements.delete(oldest);
    return statement;
  };
}

function opened<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the database is not open");
  return value;
}
