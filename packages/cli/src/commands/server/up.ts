import { join } from "node:path";
import { serverFiles } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { counted } from "../build/view/words.ts";

/** Finds the server, or starts it. */
export async function run(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const client = await context.server();
  const { pid, version } = await client.health({ signal });
  const { builds } = await client.builds.list({ statuses: ["planning", "running"], limit: 100 }, { signal });
  const log = join(await context.stateDir(), serverFiles.log);
  const text = `the server (process ${pid}) runs and drives ${counted(builds.length, "build")}; its log: ${log}\n`;
  await context.result({ pid, version, log, builds: builds.map(({ id }) => id) }, text);
}
