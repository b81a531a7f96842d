import { join } from "node:path";
import process from "node:process";
import { installedTools } from "@slipway/agent-host";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";
import { checkerToolDirectories } from "../../work/gates/checker.ts";
import type { Registry } from "../../work/workspaces/testing.ts";
import type { Place } from "./place.ts";
import type { StandInPart } from "./stand-in.ts";

export type SandboxesPart = Awaited<ReturnType<typeof openSandboxes>>;

/** Real sandboxes of this machine, or of the stand-in for Modal. `agents` holds a directory for each agent that is a program of its own. */
export async function openSandboxes(
  options: "local" | { readonly agents: string },
  {
    directory,
    names,
    registry,
    modalEnvironment = {},
  }: Place & { readonly registry?: Registry } & Partial<StandInPart>,
  held: AsyncDisposableStack,
) {
  const agents = options === "local" ? "/nowhere" : options.agents;
  const stateDirectory = join(directory, "state");
  const environment = registry ? { ...process.env, npm_config_registry: registry.url } : process.env;
  const tools = await toolsFor(names, agents);
  const { settings } = readSandboxSettings(modalEnvironment);
  const provider = held.use(await openProvider({ ...settings, stateDir: stateDirectory, environment, tools }));
  held.defer(async () => {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  });
  return { stateDirectory, provider, agents, tools };
}

/** What runs in the sandboxes. */
async function toolsFor(names: Place["names"], agents: string): Promise<Record<string, string>> {
  const isAsked = (...some: string[]) => some.some((name) => names.has(name));
  return {
    ...(isAsked("attempts", "gates", "server") && (await installedTools(agents))),
    ...(isAsked("gates", "server") && checkerToolDirectories()),
  };
}
