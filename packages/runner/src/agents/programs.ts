/** What the host needs to find agents' programs and mount them in a sandbox. */
export { acpAgents, acpTool, unknownAgent } from "./acp/agents.ts";
export { describedAgents } from "./acp/described.ts";
export { claudeCode } from "./claude-code/command.ts";
