import { SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import type { KeeperLayout } from "./layout.ts";
import type { KeeperStart } from "./protocol.ts";
import type { Keeper } from "./serve.ts";

/**
 * The life of a keeper's process. Ends it at once when another keeper has the state directory. The environment is not
 * passed as arguments: it may hold keys, and everyone on the machine can read arguments.
 */
export async function runKeeper(
  layout: KeeperLayout,
  start: (log: (line: string) => void) => Promise<Keeper>,
): Promise<void> {
  const log = (line: string) => console.error(new Date().toISOString(), line);
  const tell = (said: KeeperStart) => process.stdout.write(`${JSON.stringify(said)}\n`);

  // Nobody else writes what this process makes, whatever the umask it was started with.
  process.umask(process.umask() | 0o022);
  process.title = `slipway-keeper ${layout.root}`;
  // The caller may be gone, with its pipe and its terminal.
  process.stdout.on("error", () => {});
  for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

  try {
    using lock = await takeLock(layout.keeperLock);
    if (lock !== undefined) {
      const keeper = await start(log);
      process.on("SIGTERM", () => keeper.close());
      tell({ ready: true });
      await keeper.closed;
    }
  } catch (error) {
    log(`cannot start: ${(error as Error).stack}`);
    const told =
      error instanceof SlipwayError
        ? error
        : new SlipwayError("internal", `The keeper cannot start: ${(error as Error).message}`);
    tell({ error: told.toJSON() });
  }
  process.exit(0);
}
