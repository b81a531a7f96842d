import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { keepEnds } from "../../../output.ts";
import { markProcesses } from "../../../processes.ts";
import { type BuiltinTool, defineTool, type ToolOutcome, type Workplace } from "./tool.ts";

const maxOutputBytes = 32 * 1024;
const defaultSeconds = 120;
/** For what is still in the pipe when every process that wrote to it is gone. */
const lastOutputMs = 1_000;

export function terminalTool(workplace: Workplace): BuiltinTool {
  const maxSeconds = Math.max(1, Math.floor(workplace.maxCommandMs / 1_000));
  return defineTool({
    name: "terminal",
    kind: "execute",
    description:
      "Runs a command with bash in the working directory and answers its output, standard error included, and its exit " +
      "code. There is no input. What still runs in the background when the command ends is ended.",
    schema: z.object({
      command: z.string().min(1).max(100_000),
      timeoutSeconds: z.number().min(1).max(maxSeconds).default(Math.min(defaultSeconds, maxSeconds)),
    }),
    run: ({ command, timeoutSeconds }, { signal }) => runCommand(command, workplace, timeoutSeconds * 1_000, signal),
  });
}

async function runCommand(
  command: string,
  { workdir, environment }: Workplace,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  signal.throwIfAborted();
  const mark = markProcesses();
  // The outer shell joins the streams before the command is read, so that their order is kept.
  const child = spawn("bash", ["-c", 'exec bash -c "$1" 2>&1', "terminal", command], {
    cwd: workdir,
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
  return { text: `${output.text()}\n[${end.text}]`.trimStart(), ok: end.ok };
}

/** Answers when the command itself has ended, or is to be ended. */
async function untilEnd(child: ChildProcess, timeoutMs: number, signal: AbortSignal): Promise<ToolOutcome> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const [code, by] = await once(child, "exit", { signal: limit });
    return { text: code === null ? `ended by ${by}` : `exit code ${code}`, ok: code === 0 };
  } catch (error) {
    if (!limit.aborted) throw error;
    return { text: signal.aborted ? "interrupted" : `ended after ${timeoutMs} ms, its time limit`, ok: false };
  }
}
