import { SlipwayError } from "@slipway/contract";
import { acpAgent } from "./acp/agents.ts";
import { createAcpDriver } from "./acp/driver.ts";
import { createBuiltinDriver } from "./builtin/index.ts";
import { createClaudeCodeDriver } from "./claude-code/driver.ts";
import type { Driver } from "./driver.ts";
import type { Surroundings } from "./program/find.ts";

export interface DriverOptions {
  /** For agents that run inside the runner, and their commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** For agents that are programs of their own. */
  readonly surroundings: Surroundings;
}

/** The driver of an agent's name, as a run's task has it. */
export function driverOf(name: string, { environment, surroundings }: DriverOptions): Driver {
  if (name === "builtin") return createBuiltinDriver({ environment });
  if (name === "claude-code") return createClaudeCodeDriver(surroundings);
  if (name.startsWith("acp:")) return createAcpDriver(acpAgent(name.slice("acp:".length)), surroundings);
  throw new SlipwayError("unknown_agent", `There is no agent ${name}. Use builtin, claude-code or acp:<name>.`);
}
