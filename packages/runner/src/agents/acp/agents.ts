import { SlipwayError } from "@slipway/contract";
import type { OpenOptions } from "../driver.ts";
import type { ProgramSource } from "../program/find.ts";
import { codex } from "./codex.ts";
import { opencode } from "./opencode.ts";

/** An agent that speaks the Agent Client Protocol over its standard input and output. */
export interface AcpAgent {
  readonly name: string;
  readonly program: ProgramSource;
  /** How it is started so that it finds its models at the gateway and nowhere else. */
  launch(options: OpenOptions, place: AcpPlace): AcpLaunch;
}

export interface AcpPlace {
  /** The program. */
  readonly file: string;
  readonly home: string;
}

export interface AcpLaunch {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** What it is to find in its home directory, by path. */
  readonly files: Readonly<Record<string, string>>;
}

const knownAgents: readonly AcpAgent[] = [codex, opencode];

/** Of `acp:<name>`. */
export function acpAgent(name: string): AcpAgent {
  const agent = knownAgents.find((known) => known.name === name);
  if (agent !== undefined) return agent;
  const names = knownAgents.map((known) => `acp:${known.name}`).join(", ");
  throw new SlipwayError("unknown_agent", `There is no agent acp:${name}. Known are ${names}.`);
}
