import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { keepEnds } from "./output.ts";
import { markProcesses } from "./processes.ts";

/** For what is still in the pipe when every process that wrote to it is gone. */
const lastOutputMs = 5_000;

export interface CommandOptions {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

export interface CommandEnd {
  /** Standard error included; the middle of a long one is left out. */
  readonly output: string;
  readonly ok: boolean;
  /** How it ended, in words. */
  readonly end: string;
}

/** Runs a command with bash. Answers when nothing of it is left, in the background neither. */
export async function runCommand(command: string, options: CommandOptions): Promise<CommandEnd> {
  const { directory, environment, timeoutMs, maxOutputBytes, signal } = options;
  signal.throwIfAborted();
  const mark = markProcesses();
  // The outer shell joins the streams before the command is read, so that their order is kept.
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

/** Answers when the command itself has ended, or is to be ended. */
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
