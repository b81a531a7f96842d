import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, SlipwayError, settingsError } from "@slipway/contract";
import { parseJson } from "../../system/text.ts";
import type { OpenOptions } from "../driver.ts";
import type { AcpAgent } from "./agent.ts";
import { type Description, descriptionSchema, fill } from "./description.ts";

/** The file beside an unknown agent that tells how to start it. */
const fileName = "agent.json";
const maxBytes = 64 * 1024;

/** Returns the tool directory of a described agent. Nothing else has such a name. */
export function describedTool(name: string): string {
  return `acp-${name}`;
}

/** Reads the agents described in subdirectories. One error lists all mistakes. `taken` are others' names. */
export async function describedAgents(agents: string, taken: readonly string[]): Promise<readonly AcpAgent[]> {
  const mistakes: string[] = [];
  const read = async (name: string) => {
    try {
      return await describedAgent(join(agents, name), name, taken);
    } catch (error) {
      if (!hasCode(error, "invalid_settings")) throw error;
      mistakes.push(error.message);
      return undefined;
    }
  };
  const names = (await readdir(agents).catch(ifMissing)) ?? [];
  const found = await Promise.all(names.sort().map(read));
  if (mistakes.length > 0) throw settingsError(mistakes.sort());
  return found.filter((agent) => agent !== undefined);
}

/** Reads the agent that a directory describes. Undefined if it describes none. */
export async function describedAgent(
  directory: string,
  name: string,
  taken: readonly string[] = [],
): Promise<AcpAgent | undefined> {
  const path = join(directory, fileName);
  const wrong = (why: string) => new SlipwayError("invalid_settings", `${path}: ${why}.`);
  const found = await stat(path)
    .catch(ifMissing)
    .catch((error: Error) => {
      throw wrong(error.message);
    });
  if (found === undefined) return undefined;
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(name)) {
    throw wrong("the directory's name is the agent's: up to 32 small letters, digits and dashes");
  }
  if (taken.includes(name)) throw wrong(`${name} is known without a description; choose another name`);
  if (!found.isFile() || found.size > maxBytes) throw wrong(`expected a file of up to ${maxBytes} bytes`);
  const text = await readFile(path, "utf8").catch((error: Error) => {
    throw wrong(error.message);
  });
  const parsed = descriptionSchema.safeParse(parseJson(text));
  if (parsed.success) return agentOf(name, parsed.data);
  throw wrong(parsed.error.issues.map(({ path: at, message }) => [...at, message].join(": ")).join("; "));
}

function agentOf(name: string, { command: [program, ...args], environment }: Description): AcpAgent {
  return {
    name,
    program: { directory: describedTool(name), files: [program], command: program, packages: [] },
    launch(options, { file }) {
      const values = valuesOf(options);
      const env = Object.entries(environment).map(([variable, value]) => [variable, fill(value, values)]);
      return {
        // Uses the runner's Node: a sandbox's image may have none.
        argv: [...runtimeOf(file), ...args.map((word) => fill(word, values))],
        env: Object.fromEntries(env),
        files: {},
        // Its own place for instructions is unknown.
        preface: options.instructions,
      };
    },
  };
}

function runtimeOf(file: string): [string, ...string[]] {
  return /\.[cm]?js$/.test(file) ? [process.execPath, file] : [file];
}

function valuesOf({ gateway, model }: OpenOptions) {
  return { base_url: gateway.baseUrl, token: gateway.token, model };
}

/** Other directories may lie beside. */
function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (!["ENOENT", "ENOTDIR", "EACCES"].includes(error.code ?? "")) throw error;
}
