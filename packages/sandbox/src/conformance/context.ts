import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { CreateSandboxInput, ErrorCode, ExecChunk, ExecRequestInput } from "@slipway/contract";
import { SlipwayError } from "@slipway/contract";
import { expect } from "vitest";
import type { Capabilities, Exec, OwnedSandbox, RestrictedSandbox, Sandbox, SandboxProvider } from "../provider.ts";
import { type RunOptions, type RunResult, run } from "../run.ts";
import { command, type ProgramName } from "./programs.ts";
import type { ConformanceSubject, ConformanceTarget } from "./target.ts";

/** What the suite's tests share. Everything but the capabilities is there only while tests run. */
export interface Conformance {
  readonly capabilities: Capabilities;
  readonly subject: ConformanceSubject;
  readonly target: ConformanceTarget;
  readonly provider: SandboxProvider;
  /** A sandbox for tests that leave it running and keep to a directory of their own. */
  readonly shared: Sandbox;
  create(request?: CreateSandboxInput): Promise<OwnedSandbox>;
  /** A path below the workdir that no other test uses. */
  place(): string;
}

/** Sandboxes of the suite are small, so that a provider with few resources holds several. */
export const small = { cpu: 1, memoryMb: 512, diskMb: 512 } as const;

export function uniqueName(): string {
  return `t-${randomUUID().slice(0, 8)}`;
}

export async function runProgram(
  sandbox: Pick<RestrictedSandbox, "exec">,
  name: ProgramName,
  args: string[] = [],
  options: RunOptions = {},
): Promise<RunResult> {
  return await run(sandbox, command(name, ...args).argv ?? [], options);
}

/** Starts a program that says `ready` and waits for the word. */
export async function startReady(
  sandbox: Pick<RestrictedSandbox, "exec">,
  name: ProgramName,
  args: string[] = [],
  request: Partial<ExecRequestInput> = {},
): Promise<{ exec: Exec; output: AsyncIterator<ExecChunk> }> {
  const exec = await sandbox.exec({ ...command(name, ...args), ...request });
  const output = exec.output()[Symbol.asyncIterator]();
  let said = "";
  while (!said.includes("ready")) {
    const { done, value } = await output.next();
    if (done === true) throw new Error(`${name} ended before it was ready`);
    if (value.type === "stdout") said += Buffer.from(value.data).toString("latin1");
  }
  return { exec, output };
}

/** Every byte of both streams, with the offsets checked. */
export async function collect(
  chunks: AsyncIterable<ExecChunk>,
  from = { stdout: 0, stderr: 0 },
): Promise<{ stdout: Buffer; stderr: Buffer; truncated: boolean }> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const at = { ...from };
  let truncated = false;
  for await (const chunk of chunks) {
    if (chunk.type === "output_truncated") {
      truncated = true;
      continue;
    }
    expect(chunk.offset).toBe(at[chunk.type]);
    at[chunk.type] += chunk.data.length;
    parts[chunk.type].push(chunk.data);
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), truncated };
}

export async function drain<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The call fails as expected failures do: with this code, a sentence, and something to do about it. */
export async function expectCode(
  call: Promise<unknown> | (() => Promise<unknown>),
  ...codes: ErrorCode[]
): Promise<void> {
  const error = await (typeof call === "function" ? call() : call).then(
    (value) => {
      throw new Error(`expected ${codes.join(" or ")}, but the call answered ${JSON.stringify(value)}`);
    },
    (reason: unknown) => reason,
  );
  if (!(error instanceof SlipwayError)) throw error;
  expect(codes, error.message).toContain(error.code);
  expect(error.message).not.toBe("");
  expect(error.toJSON().action).not.toBe("");
}

/** Tries until the check passes; its last failure is the test's. */
export async function eventually<T>(check: () => Promise<T> | T): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}
