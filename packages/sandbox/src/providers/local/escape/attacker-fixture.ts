import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CreateSandboxInput, SandboxEvent } from "@slipway/contract";
import type { Exec, OwnedSandbox, Sandbox, SandboxProvider } from "../../../provider.ts";
import { type RunOptions, type RunResult, run } from "../../../run.ts";
import { setUpLocal } from "../testing.ts";

/** A provider to attack, and the attackers' programs. */
export interface Attacker extends AsyncDisposable {
  readonly provider: SandboxProvider;
  readonly stateDir: string;
  /** A small sandbox; with everything else of the attack it goes when the attacker is disposed of. */
  sandbox(request?: CreateSandboxInput): Promise<OwnedSandbox>;
  /** Runs `programs/<name>.c`, compiled statically, inside. */
  run(sandbox: Sandbox, name: string, args?: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Starts it and waits until it has said `ready`. */
  start(sandbox: Sandbox, name: string, args?: readonly string[], options?: StartOptions): Promise<Started>;
  /** The path of the program inside. */
  put(sandbox: Sandbox, name: string): Promise<string>;
}

export interface StartOptions {
  readonly timeoutMs?: number;
  readonly background?: boolean;
}

export interface Started {
  readonly exec: Exec;
  /** Everything it has written so far. */
  said(): string;
}

export const users = ["agent", "root"] as const;

export const small = { cpu: 1, memoryMb: 256, diskMb: 256, processes: 128 } as const;

export function attack(): Attacker {
  const local = setUpLocal();
  const programs = mkdtempSync(join(tmpdir(), "slipway-escape-"));
  const compiled = new Map<string, Buffer>();
  const program = (name: string): Buffer => {
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const source = fileURLToPath(new URL(`./fixtures/${name}.c`, import.meta.url));
    const target = join(programs, name);
    execFileSync("cc", ["-std=gnu17", "-O1", "-Wall", "-Werror", "-static", "-pthread", "-o", target, source]);
    const bytes = readFileSync(target);
    compiled.set(name, bytes);
    return bytes;
  };
  const put = async (sandbox: Sandbox, name: string): Promise<string> => {
    const path = `/tmp/attack-${name}`;
    await sandbox.files.write(path, program(name), { mode: 0o755 });
    return path;
  };
  return {
    provider: local.provider,
    stateDir: local.stateDir,
    sandbox: (request = {}) => local.provider.create({ ...small, ...request }),
    put,
    run: async (sandbox, name, args = [], options = {}) => run(sandbox, [await put(sandbox, name), ...args], options),
    async start(sandbox, name, args = [], options = {}) {
      const exec = await sandbox.exec({ argv: [await put(sandbox, name), ...args], ...options });
      const output = exec.output();
      const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
      let said = "";
      const listen = async () => {
        for await (const chunk of output) {
          if (chunk.type === "output_truncated") continue;
          said += Buffer.from(chunk.data).toString("latin1");
          if (said.includes("ready")) resolve();
        }
        reject(new Error(`${name} ended before it was ready: ${said}`));
      };
      listen().catch(reject);
      await ready;
      return { exec, said: () => said };
    },
    async [Symbol.asyncDispose]() {
      await local[Symbol.asyncDispose]();
      // What is left of the attack may be nested deeper than Node removes.
      execFileSync("rm", ["-rf", dirname(local.stateDir), programs]);
    },
  };
}

/** The first event of a sandbox that matches, kept or to come. */
export async function eventOf<T extends SandboxEvent["type"]>(
  provider: SandboxProvider,
  sandbox: Sandbox,
  type: T,
  matches: (event: Extract<SandboxEvent, { type: T }>) => boolean = () => true,
): Promise<Extract<SandboxEvent, { type: T }>> {
  // Longer than a disk goes unlooked at while others' deletions hide what is written to it.
  const signal = AbortSignal.timeout(100_000);
  for await (const event of provider.events({ sandbox: sandbox.id, signal })) {
    const wanted = event as Extract<SandboxEvent, { type: T }>;
    if (event.type === type && matches(wanted)) return wanted;
  }
  throw new Error(`no ${type} of ${sandbox.id}`);
}

/** Lines `name: answer` of an attacker's program. */
export function answers(text: string): Map<string, string> {
  const lines = text.split("\n").filter((line) => line.includes(": "));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
}
