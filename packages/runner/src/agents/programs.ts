/** What the host has to know of agents to find their programs and show them to a sandbox. */
export { acpAgents, acpTool, unknownAgent } from "./acp/agents.ts";
export { describedAgents } from "./acp/described.ts";
export { claudeCode } from "./claude-code/command.ts";
