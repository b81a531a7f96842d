import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { lockHolder, takeLock } from "@slipway/host";

/** A holder that was killed keeps a lock until the last of its threads has ended. */
const waitMs = 1_000;

/** Holds a path for this server. Fails with `server_running` when another one has it. */
export async function takeServerLock(path: string, what: string): Promise<Disposable> {
  const lock = await take(path).catch((cause: Error) => {
    throw new SlipwayError("invalid_settings", `can not use ${what}: ${cause.message}`, { cause });
  });
  if (lock !== undefined) return lock;
  const pid = lockHolder(path);
  throw new SlipwayError(
    "server_running",
    `another server${pid === undefined ? "" : ` (process ${pid})`} uses ${what}`,
  );
}

async function take(path: string): Promise<Disposable | undefined> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return await takeLock(path, { waitMs });
}
