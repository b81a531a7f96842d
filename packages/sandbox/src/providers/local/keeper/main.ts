import { SlipwayError } from "@slipway/contract";
import { acquireProcessLock } from "../process-lock.ts";
import { systemClock } from "./clock.ts";
import { startKeeper } from "./keeper.ts";
import type { KeeperStart } from "./protocol.ts";
import type { KeeperSettings } from "./settings.ts";

/** The keeper's process: `node main.ts <settings as JSON>`. Ends at once when another keeper has the state directory. */
const settings = JSON.parse(process.argv[2] ?? "{}") as KeeperSettings;
const log = (line: string) => console.error(new Date().toISOString(), line);
const tell = (start: KeeperStart) => process.stdout.write(`${JSON.stringify(start)}\n`);

process.title = `slipway-keeper ${settings.stateDir}`;
// The caller that started the keeper may be gone, its pipe and its terminal with it.
process.stdout.on("error", () => {});
for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => {});

if ((await acquireProcessLock("keeper", settings.stateDir)) !== null) {
  try {
    const keeper = await startKeeper(settings, systemClock, log);
    process.on("SIGTERM", () => keeper.close());
    tell({ ready: true });
    await keeper.closed;
  } catch (error) {
    log(`can not start: ${(error as Error).stack}`);
    const told =
      error instanceof SlipwayError
        ? error
        : new SlipwayError("internal", `the keeper can not start: ${(error as Error).message}`);
    tell({ error: told.toJSON() });
  }
}
process.exit(0);
