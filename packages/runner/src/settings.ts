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
  readonly directory: string;
  /** For agents and their commands: without what is the runner's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The one place where the runner reads its environment. */
export function readSettings(environment: NodeJS.ProcessEnv): RunnerSettings {
  const parsed = schema.parse(environment);
  const others = Object.entries(environment).filter(([name, value]) => value !== undefined && !(name in schema.shape));
  return {
    token: parsed.SLIPWAY_RUN_TOKEN,
    socketPath: parsed.SLIPWAY_RUN_SOCKET,
    directory: parsed.SLIPWAY_RUN_DIR,
    environment: Object.fromEntries(others) as Record<string, string>,
  };
}
