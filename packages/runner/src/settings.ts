import { createHash } from "node:crypto";
import { join } from "node:path";
import { runChannel } from "@slipway/contract";
import { z } from "zod";

const schema = z.object({
  SLIPWAY_RUN_TOKEN: z.string().min(1),
  SLIPWAY_RUN_SOCKET: z.string().default(runChannel.socket),
  SLIPWAY_RUN_DIR: z.string().default("/var/tmp/slipway-run"),
});

export interface RunnerSettings {
  readonly token: string;
  readonly socketPath: string;
  /** Of this run: a restarted runner has the same one. */
  readonly directory: string;
  /** For agents and their commands: without what is the runner's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The one place where the runner reads its environment. */
export function readSettings(environment: NodeJS.ProcessEnv): RunnerSettings {
  const parsed = schema.parse(environment);
  // A sandbox may see one run after another: each finds its own files and no other's.
  const run = createHash("sha256").update(parsed.SLIPWAY_RUN_TOKEN).digest("hex").slice(0, 16);
  const others = Object.entries(environment).filter(([name, value]) => value !== undefined && !(name in schema.shape));
  return {
    token: parsed.SLIPWAY_RUN_TOKEN,
    socketPath: parsed.SLIPWAY_RUN_SOCKET,
    directory: join(parsed.SLIPWAY_RUN_DIR, run),
    environment: Object.fromEntries(others) as Record<string, string>,
  };
}
