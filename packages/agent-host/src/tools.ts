import { access } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { acpAgents, acpTool, claudeCode, describedAgents, unknownAgent } from "@slipway/runner/agents";
import { buildRunner } from "@slipway/runner/build";

/** Names of the tool directories that every run needs. */
export const runnerTools = ["node", "runner"] as const;

/** The tool directory of an agent; undefined for the built-in one, which is part of the runner. */
export function agentTool(agent: string): string | undefined {
  if (agent === "builtin") return undefined;
  return agent.startsWith("acp:") ? acpTool(agent.slice("acp:".length)) : agent;
}

/**
 * Directories on the host for the tool directories of an agent's run, by name. `agents` holds a directory for each installed
 * agent. Fails with `unknown_agent`, with `component_missing` and what to do, or with `invalid_settings` of a description.
 */
export async function toolDirectories(agent: string, agents: string): Promise<Record<string, string>> {
  const common = { node: nodeDirectory(), runner: await buildRunner() };
  const tool = agentTool(agent);
  if (tool === undefined) return common;
  const programs = await agentPrograms(agents);
  const wanted = programs.find(({ name }) => name === agent);
  if (wanted === undefined) {
    throw unknownAgent(
      agent,
      programs.map(({ name }) => name),
    );
  }
  if (!wanted.installed) {
    const installed = ["builtin", ...programs.filter((program) => program.installed).map(({ name }) => name)].join(
      ", ",
    );
    const message = `the agent ${agent} is not installed (${installed} are); to have it: ${wanted.install}`;
    throw new SlipwayError("component_missing", message);
  }
  return { ...common, [tool]: wanted.directory };
}

/** The directories of every agent that is installed, and of what all runs need. */
export async function installedTools(agents: string): Promise<Record<string, string>> {
  const installed = (await agentPrograms(agents)).flatMap(({ name, installed }) => (installed ? [name] : []));
  const all = await Promise.all(["builtin", ...installed].map((agent) => toolDirectories(agent, agents)));
  return Object.assign({}, ...all);
}

/** An agent that is a program of its own. */
export interface AgentProgram {
  readonly name: string;
  readonly directory: string;
  readonly installed: boolean;
  /** The command that installs it. Empty for one that its directory describes, which is there. */
  readonly install: string;
}

/** All that there are, and which of them are in the directory. */
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
  const programs = await Promise.all(
    known.map(async ({ name, program }) => {
      const directory = join(agents, program.directory);
      const installed = await access(directory).then(
        () => true,
        () => false,
      );
      const install = `npm install --prefix ${directory} ${program.packages.join(" ")}`;
      return { name, directory, installed, install };
    }),
  );
  return [...programs, ...described];
}

/** Node 24 by itself, whatever else lies beside the program that runs this. */
function nodeDirectory(): string {
  const name = `node-linux-${process.arch}`;
  return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin");
}
