import { SlipwayError } from "@slipway/contract";
import type { AcpAgent } from "./agent.ts";
import { codex } from "./codex.ts";
import { opencode } from "./opencode.ts";

export const acpAgents: readonly AcpAgent[] = [codex, opencode];

/** Of `acp:<name>`. */
export function acpAgent(name: string): AcpAgent {
  const agent = acpAgents.find((known) => known.name === name);
  if (agent !== undefined) return agent;
  const names = acpAgents.map((known) => `acp:${known.name}`).join(", ");
  throw new SlipwayError("unknown_agent", `There is no agent acp:${name}. Known are ${names}.`);
}
