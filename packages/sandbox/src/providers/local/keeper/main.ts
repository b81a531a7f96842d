import { systemClock } from "../../../keeper/clock.ts";
import { runKeeper } from "../../../keeper/process.ts";
import { layoutOf } from "../layout.ts";
import { startKeeper } from "./keeper.ts";

/** The keeper's process: `node main.ts <state directory> <uid of sandboxes> <bytes to leave free>`. */
const [stateDir = "", sandboxUid, minFreeBytes] = process.argv.slice(2);
const settings = {
  stateDir,
  sandboxUid: Number(sandboxUid),
  minFreeBytes: Number(minFreeBytes),
  environment: process.env,
};

await runKeeper(layoutOf(stateDir), (log) => startKeeper(settings, systemClock, log));
