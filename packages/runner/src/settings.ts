import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({
  SLIPWAY_RUN_TOKEN: z.string().min(1),
  SLIPWAY_RUN_SOCKET: z.string().min(1),
  /** Where the tool directories are, each by its name. */
  SLIPWAY_TOOLS_DIR: z.string().min(1),
  SLIPWAY_RUN_DIR: z.string().default("/var/tmp/slipway-run"),
  /** Names the run's directory. A run with an earlier run's name continues its work. */
  SLIPWAY_RUN_NAME: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional(),
});

export interface RunnerSettings {
  readonly token: string;
  readonly socketPath: string;
  readonly toolsDirectory: string;
  /** The run's directory. The same after a restart of the runner. */
  readonly directory: string;
  /** For this run's channel only. */
  readonly channelDirectory: string;
  /** For agents and their commands: without the runner's own variables. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The only place where the runner reads its environment. */
export function readSettings(environment: NodeJS.ProcessEnv): RunnerSettings {
  const parsed = schema.parse(environment);
  // A sandbox may host one run after another. Each has its own files.
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
