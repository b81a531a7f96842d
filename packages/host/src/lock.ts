import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Holds the file at this path for one user of one process; undefined when it is held already, be it by this process. The kernel
 * frees it when the process ends, however that ends, so it is never stale. Only its owner can open the file, so no other user
 * of the machine can hold it.
 *
 * SQLite takes the lock (fcntl), as Node has none. On NFS that needs a working lock daemon.
 */
export async function takeLock(path: string, { waitMs = 0 } = {}): Promise<Disposable | undefined> {
  createFile(path);
  const giveUpAtMs = performance.now() + waitMs;
  for (;;) {
    const file = lockFile(path);
    if (file !== undefined) {
      writeFileSync(holderPath(path), String(process.pid), { mode: 0o600 });
      return {
        [Symbol.dispose]() {
          rmSync(holderPath(path), { force: true });
          file.close();
        },
      };
    }
    if (performance.now() >= giveUpAtMs) return undefined;
    await sleep(retryMs);
  }
}

/** The process that holds the lock, as far as it is known. */
export function lockHolder(path: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(holderPath(path), "utf8"), 10) || undefined;
  } catch {
    return undefined;
  }
}

const retryMs = 20;
const sqliteBusy = 5;

const holderPath = (path: string) => `${path}.pid`;

/** Never opens what is there: closing any descriptor of the file would free the lock that this process has on it. */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function lockFile(path: string): DatabaseSync | undefined {
  // No wait in here: it would stop the whole process.
  const file = new DatabaseSync(path, { timeout: 0 });
  try {
    file.exec("begin exclusive");
    return file;
  } catch (error) {
    file.close();
    if ((error as { readonly errcode?: number }).errcode === sqliteBusy) return undefined;
    throw error;
  }
}
