import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({
  SLIPWAY_RUN_TOKEN: z.string().min(1),
  SLIPWAY_RUN_SOCKET: z.string().min(1),
  /** Where the tool directories are, each by its name. */
  SLIPWAY_TOOLS_DIR: z.string().min(1),
  SLIPWAY_RUN_DIR: z.string().default("/var/tmp/slipway-run"),
  /** Of the run's directory. A run with the name of an earlier one goes on with what that one has done. */
  SLIPWAY_RUN_NAME: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional(),
});

export interface RunnerSettings {
  readonly token: string;
  readonly socketPath: string;
  readonly toolsDirectory: string;
  /** Of this run: a restarted runner has the same one. */
  readonly directory: string;
  /** What was said on this run's channel, and on no other's. */
  readonly channelDirectory: string;
  /** For agents and their commands: without what is the runner's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The one place where the runner reads its environment. */
export function readSettings(environment: NodeJS.ProcessEnv): RunnerSettings {
  const parsed = schema.parse(environment);
  // A sandbox may see one run after another: each finds its own files and no other's.
  const run = createHash("sha256").update(parsed.SLIPWAY_RUN_TOKEN).digest("hex").slice(0, 16);
  const others = Object.entries(environment).filter(([name, value]) => value !== undefined && !(name in schema.shape));
  const directory = join(parsed.SLIPWAY_RUN_DIR, parsed.SLIPWAY_RUN_NAME ?? run);
  return {
    token: parsed.SLIPWAY_RUN_TOKEN,
    socketPath: parsed.SLIPWAY_RUN_SOCKET,
    toolsDirectory: parsed.SLIPWAY_TOOLS_DIR,
    directory,
    channelDirectory: join(directory, `channel-${run}`),
    environment: Object.fromEntries(others) as Record<string, string>,
  };
}
