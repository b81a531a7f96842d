import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { type Bin, binPath } from "./bin.ts";

const python = fileURLToPath(new URL("terminal.py", import.meta.url));

export interface Typed {
  readonly code: number | null;
  /** The terminal was given back as it was. */
  readonly restored: boolean;
  /** Steps that never came. */
  readonly left: number;
  readonly shown: string;
  /** With all that moves the cursor and colours. */
  readonly raw: string;
}

/** Runs the program on a real terminal: each text is typed when the one before it has been seen. */
export async function type(bin: Bin, argv: readonly string[], steps: readonly [string, string][]): Promise<Typed> {
  const child = spawn("python3", [python, process.execPath, binPath, ...argv], { env: bin.environment });
  child.stdin.end(steps.map((step) => `${step.join("\t")}\n`).join(""));
  const raw = await text(child.stdout);
  const end = raw.trimEnd().lastIndexOf("\n");
  return { shown: stripVTControlCharacters(raw.slice(0, end)), raw, ...JSON.parse(raw.slice(end)) };
}
