import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { acpAgent, acpTool } from "./acp/agents.ts";
import { describedAgent } from "./acp/described.ts";
import { createAcpDriver } from "./acp/driver.ts";
import { createBuiltinDriver } from "./builtin/index.ts";
import { createClaudeCodeDriver } from "./claude-code/driver.ts";
import type { Driver } from "./driver.ts";
import type { Surroundings } from "./program/find.ts";

/** Returns the driver for an agent's name in a task. */
export function driverOf(name: string, surroundings: Surroundings): Driver {
  if (name === "builtin") return createBuiltinDriver(surroundings);
  if (name === "claude-code") return createClaudeCodeDriver(surroundings);
  if (name.startsWith("acp:")) return acpDriverOf(name.slice("acp:".length), surroundings);
  throw new SlipwayError("unknown_agent", `There is no agent ${name}. Use builtin, claude-code or acp:<name>.`);
}

function acpDriverOf(name: string, surroundings: Surroundings): Driver {
  return {
    name: `acp:${name}`,
    async open(options) {
      const described = await describedAgent(join(surroundings.toolsDirectory, acpTool(name)), name);
      return await createAcpDriver(acpAgent(name, described && [described]), surroundings).open(options);
    },
  };
}
