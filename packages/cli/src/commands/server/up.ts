import { join } from "node:path";
import { serverFiles } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { counted } from "../build/view/words.ts";

/** Starts the server if it is not running. */
export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const client = await context.server();
  const { pid, version } = await client.server.health({ signal });
  const { builds } = await client.builds.list({ status: ["planning", "running"], limit: 100 }, { signal });
  const log = join(await context.stateDir(), serverFiles.log);
  const text = `server (process ${pid}) running, driving ${counted(builds.length, "build")}; log: ${log}\n`;
  await context.result({ pid, version, log, builds: builds.map(({ id }) => id) }, text);
}
