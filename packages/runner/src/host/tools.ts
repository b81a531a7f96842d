import { access } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { buildRunner } from "../../build.mjs";
import { acpAgent } from "../agents/acp/agents.ts";

/** Names of the tool directories that every run needs. */
export const runnerTools = ["node", "runner"] as const;

/** The tool directory of an agent; undefined for the built-in one, which is part of the runner. Fails with `unknown_agent`. */
export function agentTool(agent: string): string | undefined {
  if (agent === "builtin") return undefined;
  return agent.startsWith("acp:") ? acpAgent(agent.slice("acp:".length)).program.directory : agent;
}

/** Directories on the host for the tool directories of an agent's run, by name. `agents` holds a directory for each installed agent. */
export async function toolDirectories(agent: string, agents: string): Promise<Record<string, string>> {
  const common = { node: nodeDirectory(), runner: await buildRunner() };
  const tool = agentTool(agent);
  if (tool === undefined) return common;
  const directory = join(agents, tool);
  await access(directory).catch(() => {
    throw new SlipwayError(
      "component_missing",
      `the agent ${tool} is not installed: there is no ${directory}; docs/guides/use-an-agent.md tells how to install it`,
    );
  });
  return { ...common, [tool]: directory };
}

/** Node 24 by itself, whatever else lies beside the program that runs this. */
function nodeDirectory(): string {
  const name = `node-linux-${process.arch}`;
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin");
}
