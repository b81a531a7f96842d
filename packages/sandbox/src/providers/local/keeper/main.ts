import { createHash } from "node:crypto";
import { createServer } from "node:net";
import { SlipwayError } from "@slipway/contract";
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

if (await lock(settings.stateDir)) {
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

/** An abstract socket is a lock that the kernel frees with its holder, however that ends. */
function lock(stateDir: string): Promise<boolean> {
  const name = createHash("sha256").update(`${process.getuid?.()}:${stateDir}`).digest("hex");
  const holder = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    holder.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    holder.listen(`\0slipway-keeper-${name}`, () => resolve(true));
  });
}
