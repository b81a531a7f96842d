import { agentTool, toolDirectories } from "@slipway/agent-host";
import { SlipwayError } from "@slipway/contract";

/**
 * Tells whether an agent can work on tasks: `tools` are what sandboxes have had since the server's start, `directory` holds
 * one for each agent that is installed now. Fails with `unknown_agent`, or with `component_missing` and what to do.
 */
export function createAgentCheck(
  tools: Readonly<Record<string, string>>,
  directory: string,
): (agent: string) => Promise<void> {
  return async (agent) => {
    const tool = agentTool(agent);
    if (tool === undefined) return;
    await toolDirectories(agent, directory);
    if (tool in tools) return;
    const message = `the agent ${agent} was installed after the server had started; to have it: slipway down`;
    throw new SlipwayError("component_missing", message);
  };
}
