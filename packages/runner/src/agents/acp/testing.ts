import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The description of `agent-fixture.ts`, which misbehaves as `mode` says, or asks its model as `model` does. */
export function describeFixture(mode: string) {
  return {
    command: ["agent.mjs", mode],
    environment: { MODEL_URL: "{base_url}/v1", MODEL_KEY: "{token}", MODEL: "{model}" },
  };
}

/** Puts it into a directory of agents, as a user would. */
export async function installFixture(agents: string, name: string, description: object): Promise<void> {
  const directory = join(agents, name);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "agent.json"), JSON.stringify(description));
  await build({
    entryPoints: [fileURLToPath(new URL("agent-fixture.ts", import.meta.url))],
    outfile: join(directory, "agent.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    logLevel: "silent",
  });
}
