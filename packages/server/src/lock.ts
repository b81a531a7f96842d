import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SlipwayError } from "@slipway/contract";

/**
 * Holds a path, for one process. The kernel frees it when its holder ends, however that ends, so that it is never stale.
 * SQLite takes it, as Node has no locks of files. Fails with `server_running` when another process has it.
 */
export function takeLock(path: string, what: string): Disposable {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Whoever may open it can hold it.
  writeFileSync(path, "", { flag: "a", mode: 0o600 });
  const file = new DatabaseSync(path, { timeout: 0 });
  const holder = `${path}.json`;
  try {
    file.exec("begin exclusive");
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode !== sqliteBusy) throw error;
    throw new SlipwayError("server_running", `another server${pidIn(holder)} uses ${what}`, { cause: error });
  }
  writeFileSync(holder, JSON.stringify({ pid: process.pid, since: Date.now() }), { mode: 0o600 });
  return {
    [Symbol.dispose]() {
      rmSync(holder, { force: true });
      file.close();
    },
  };
}

const sqliteBusy = 5;

function pidIn(path: string): string {
  try {
    const { pid } = JSON.parse(readFileSync(path, "utf8")) as { pid?: unknown };
    return Number.isInteger(pid) ? ` (process ${pid})` : "";
  } catch {
    return "";
  }
}
