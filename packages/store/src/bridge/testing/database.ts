import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, openDatabase } from "../../database/open.ts";

export interface TestDatabases extends AsyncDisposable {
  readonly path: string;
  /** Another connection to the same file. */
  open(): Database;
}

export function createTestDatabases(): TestDatabases {
  const directory = mkdtempSync(join(tmpdir(), "slipway-bridge-"));
  const path = join(directory, "bridge.db");
  const opened: Database[] = [];
  return {
    path,
    open() {
      const database = openDatabase({ url: `file:${path}` });
      opened.push(database);
      return database;
    },
    async [Symbol.asyncDispose]() {
      for (const database of opened) await database[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
}
