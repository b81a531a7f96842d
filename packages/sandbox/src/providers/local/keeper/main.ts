import { SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import { layoutOf } from "../layout.ts";
import { systemClock } from "./clock.ts";
import { startKeeper } from "./keeper.ts";
import type { KeeperStart } from "./protocol.ts";

/**
 * The keeper's process: `node main.ts <state directory> <uid of sandboxes> <bytes to leave free>`. Exits at once when
 * another keeper has the state directory. The environment is not passed as arguments: it may hold keys, and everyone
 * on the machine can read arguments.
 */
const [stateDir = "", sandboxUid, minFreeBytes] = process.argv.slice(2);
const settings = {
  stateDir,
  sandboxUid: Number(sandboxUid),
  minFreeBytes: Number(minFreeBytes),
  environment: process.env,
};
const log = (line: string) => console.error(new Date().toISOString(), line);
const tell = (start: KeeperStart) => process.stdout.write(`${JSON.stringify(start)}\n`);

// Nobody else writes what this process makes, whatever the umask it was started with.
process.umask(process.umask() | 0o022);
process.title = `slipway-keeper ${stateDir}`;
// The caller may be gone, with its pipe and its terminal.
process.stdout.on("error", () => {});
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

try {
  using lock = await takeLock(layoutOf(stateDir).keeperLock);
  if (lock !== undefined) {
    const keeper = await startKeeper(settings, systemClock, log);
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
