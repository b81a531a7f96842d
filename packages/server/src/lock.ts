import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SlipwayError } from "@slipway/contract";

/**
 * Holds a path, for one process. The kernel frees it when its holder ends, however that ends, so that it is never stale.
 * SQLite takes it, as Node has no locks of files. Fails with `server_running` when another one has it.
 */
export function takeLock(path: string, what: string): Disposable {
  const holder = `${path}.json`;
  try {
    const file = lockFile(path);
    writeFileSync(holder, JSON.stringify({ pid: process.pid, since: Date.now() }), { mode: 0o600 });
    return {
      [Symbol.dispose]() {
        rmSync(holder, { force: true });
        file.close();
      },
    };
  } catch (cause) {
    const { errcode, message } = cause as Error & { readonly errcode?: number };
    if (errcode !== sqliteBusy)
      throw new SlipwayError("invalid_settings", `can not use ${what}: ${message}`, { cause });
    throw new SlipwayError("server_running", `another server${pidIn(holder)} uses ${what}`, { cause });
  }
}

const sqliteBusy = 5;

function lockFile(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Whoever may open it can hold it.
  writeFileSync(path, "", { flag: "a", mode: 0o600 });
  // A holder that was killed keeps it until the last of its threads has ended.
  const file = new DatabaseSync(path, { timeout: 1_000 });
  try {
    file.exec("begin exclusive");
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

function pidIn(path: string): string {
  try {
    const { pid } = JSON.parse(readFileSync(path, "utf8")) as { pid?: unknown };
    return Number.isInteger(pid) ? ` (process ${pid})` : "";
  } catch {
    return "";
  }
}
