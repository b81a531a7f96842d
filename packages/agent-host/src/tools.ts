import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { acpAgents, acpTool, claudeCode, describedAgents, unknownAgent } from "@slipway/runner/agents";
import { buildRunner } from "@slipway/runner/build";

/** Names of the tool directories that every run needs. */
export const runnerTools = ["node", "runner"] as const;

/** The tool directory of an agent; undefined for the built-in agent, which is part of the runner. */
export function agentTool(agent: string): string | undefined {
  if (agent === "builtin") return undefined;
  return agent.startsWith("acp:") ? acpTool(agent.slice("acp:".length)) : agent;
}

/**
 * Directories on the host for the tool directories of an agent's run, by name. `agents` holds a directory for each installed
 * agent. Fails with `unknown_agent`, `component_missing` (the message says how to install it), or `invalid_settings` for a
 * bad description.
 */
export async function toolDirectories(agent: string, agents: string): Promise<Record<string, string>> {
  const common = { node: nodeDirectory(), runner: await buildRunner() };
  const tool = agentTool(agent);
  if (tool === undefined) return common;
  const programs = await agentPrograms(agents);
  const wanted = programs.find(({ name }) => name === agent);
  const names = programs.map(({ name }) => name);
  if (wanted === undefined) throw unknownAgent(agent, names);
  if (!wanted.installed) {
    const installed = programs.flatMap(({ name, installed }) => (installed ? [name] : []));
    const message = `the agent ${agent} is not installed (installed: ${["builtin", ...installed].join(", ")})`;
    throw new SlipwayError("component_missing", `${message}; to install it: ${wanted.install}`);
  }
  return { ...common, [tool]: wanted.directory };
}

/** The tool directories of all installed agents, with those that every run needs. */
export async function installedTools(agents: string): Promise<Record<string, string>> {
  const installed = (await agentPrograms(agents)).flatMap(({ name, installed }) => (installed ? [name] : []));
  const all = await Promise.all(["builtin", ...installed].map((agent) => toolDirectories(agent, agents)));
  return Object.assign({}, ...all);
}

/** An agent that is a separate program. */
export interface AgentProgram {
  readonly name: string;
  readonly directory: string;
  readonly installed: boolean;
  /** The command that installs it. Empty for an agent that its own directory describes: it is always installed. */
  readonly install: string;
}

/** All known and described agents, and which of them are in the directory. */
export async function agentPrograms(agents: string): Promise<readonly AgentProgram[]> {
  const known = [
    { name: "claude-code", program: claudeCode },
    ...acpAgents.map(({ name, program }) => ({ name: `acp:${name}`, program })),
  ];
  const taken = known.map(({ program }) => program.directory);
  const described = (await describedAgents(agents, taken)).map(({ name }) => ({
    name: `acp:${name}`,
    directory: join(agents, name),
    installed: true,
    install: "",
  }));
  const programs = known.map(({ name, program }) => {
    const directory = join(agents, program.directory);
    const install = `npm install --prefix ${directory} ${program.packages.join(" ")}`;
    return { name, directory, installed: existsSync(directory), install };
  });
  return [...programs, ...described];
}

/** A directory with Node 24 and nothing else. */
function nodeDirectory(): string {
  const name = `node-linux-${process.arch}`;
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin");
}
