import { systemClock } from "../../../keeper/clock.ts";
import { runKeeper } from "../../../keeper/process.ts";
import { layoutOf } from "../layout.ts";
import { startKeeper } from "./compose.ts";
import { readKeeperSettings } from "./settings.ts";

/** The keeper's process: `node main.ts <state directory>`. */
const layout = layoutOf(process.argv[2] ?? "");

await runKeeper(layout, (log) => startKeeper(layout, readKeeperSettings(process.env), systemClock, log));
