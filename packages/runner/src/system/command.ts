import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { keepEnds } from "./output.ts";
import { markProcesses } from "./processes.ts";

/** For output still in the pipe when all of its writers are gone. */
const lastOutputMs = 5_000;

export interface CommandOptions {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

export interface CommandEnd {
  /** Includes standard error. Leaves out the middle of a long output. */
  readonly output: string;
  readonly ok: boolean;
  /** How it ended, in words. */
  readonly end: string;
}

/** Runs a command with bash. Resolves when nothing of it is left, not even in the background. */
export async function runCommand(command: string, options: CommandOptions): Promise<CommandEnd> {
  const { directory, environment, timeoutMs, maxOutputBytes, signal } = options;
  signal.throwIfAborted();
  const mark = markProcesses();
  // The outer shell joins the streams before it runs the command, to keep their order.
  const child = spawn("bash", ["-c", 'exec bash -c "$1" 2>&1', "terminal", command], {
    cwd: directory,
    env: { ...environment, ...mark.environment },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const output = keepEnds(maxOutputBytes);
  child.stdout.on("data", (chunk: Buffer) => output.add(chunk));
  const closed = once(child.stdout, "close");
  const end = await untilEnd(child, timeoutMs, signal);
  await mark.end({ leader: child.pid });
  await Promise.race([closed, delay(lastOutputMs, undefined, { ref: false })]);
  child.stdout.destroy();
  return { ...end, output: output.text() };
}

/** Resolves when the command itself has ended or must be ended. */
async function untilEnd(
  child: ChildProcess,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Omit<CommandEnd, "output">> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const [code, by] = await once(child, "exit", { signal: limit });
    return { end: code === null ? `ended by ${by}` : `exit code ${code}`, ok: code === 0 };
  } catch (error) {
    if (!limit.aborted) throw error;
    return { end: signal.aborted ? "interrupted" : `ended after ${timeoutMs} ms, its time limit`, ok: false };
  }
}
