import { SlipwayError } from "@slipway/contract";
import type { AcpAgent } from "./agent.ts";
import { codex } from "./codex.ts";
import { describedTool } from "./described.ts";
import { gemini } from "./gemini.ts";
import { opencode } from "./opencode.ts";

export const acpAgents: readonly AcpAgent[] = [codex, gemini, opencode];

/** Finds the agent `acp:<name>`. `described` are agents that Slipway does not know itself. */
export function acpAgent(name: string, described: readonly AcpAgent[] = []): AcpAgent {
  const all = [...acpAgents, ...described];
  const agent = all.find((known) => known.name === name);
  if (agent !== undefined) return agent;
  throw unknownAgent(
    `acp:${name}`,
    all.map((known) => `acp:${known.name}`),
  );
}

/** Returns the tool directory of `acp:<name>`, whether or not it exists. */
export function acpTool(name: string): string {
  return acpAgents.find((known) => known.name === name)?.program.directory ?? describedTool(name);
}

export function unknownAgent(name: string, known: readonly string[]): SlipwayError {
  return new SlipwayError("unknown_agent", `There is no agent ${name}. Known are ${known.join(", ")}.`);
}
