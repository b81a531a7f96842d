import { constants } from "node:os";
import { join } from "node:path";
import { type ExecExit, hasCode } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";

/** As the wire tells it: an exit code, or the signal's number. */
export interface CommandEnd {
  readonly code?: number;
  readonly signal?: number;
}

/** A command in a sandbox, with its output kept and its input open. */
export interface Command {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly input: Input;
  /** Undefined while it runs. */
  readonly end: CommandEnd | undefined;
  readonly ended: Promise<CommandEnd>;
  kill(): Promise<void>;
}

export interface CommandRequest {
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly timeoutMs: number | null;
  readonly pty?: { readonly cols: number; readonly rows: number } | undefined;
  /** Where output goes that is too large for the memory. */
  readonly outputDirectory: string;
  readonly keep: { readonly stdout: boolean; readonly stderr: boolean };
}

/** A shell's codes for a program that does not exist. */
const notFoundCode = 127;
export const killed: CommandEnd = { signal: constants.signals.SIGKILL };

/** Starts a program. One that cannot be started ends at once, as in a shell. */
export async function startCommand(box: Box, request: CommandRequest): Promise<Command> {
  const { argv, environment, cwd, timeoutMs, pty } = request;
  const outputs = openOutputs(request.outputDirectory);
  let exec: Exec;
  try {
    exec = await box.exec({
      argv: [...argv],
      cwd,
      env: { ...environment },
      timeoutMs,
      stdin: "open",
      ...(pty !== undefined && { pty: { cols: pty.cols, rows: pty.rows } }),
    });
  } catch (error) {
    if (!hasCode(error, "exec_not_started")) throw error;
    outputs.stderr.push(Buffer.from(`${error.message}\n`));
    return endedCommand(outputs, { code: notFoundCode });
  }
  const input = new Input({ write: (data) => exec.write(data), end: () => exec.end() });
  const run = async (): Promise<CommandEnd> => {
    for await (const chunk of exec.output()) {
      if (chunk.type !== "output_truncated" && request.keep[chunk.type]) outputs[chunk.type].push(chunk.data);
    }
    return toEnd(await exec.wait());
  };
  return createCommand(outputs, input, run(), () => exec.kill({ graceMs: 0 }));
}

export interface Outputs {
  readonly stdout: Output;
  readonly stderr: Output;
}

export function openOutputs(directory: string): Outputs {
  return { stdout: new Output(join(directory, "stdout")), stderr: new Output(join(directory, "stderr")) };
}

/** A command that was cut off with its sandbox counts as killed. */
export function createCommand(
  { stdout, stderr }: Outputs,
  input: Input,
  running: Promise<CommandEnd>,
  kill: () => Promise<void>,
): Command {
  let end: CommandEnd | undefined;
  const ended = running
    .catch(() => killed)
    .then((seen) => {
      end = seen;
      input.close();
      stdout.end();
      stderr.end();
      return seen;
    });
  return {
    stdout,
    stderr,
    input,
    get end() {
      return end;
    },
    ended,
    kill: async () => {
      if (end === undefined) await kill();
    },
  };
}

function endedCommand(outputs: Outputs, end: CommandEnd): Command {
  const nowhere = new Input({ write: async () => {}, end: async () => {} });
  return createCommand(outputs, nowhere, Promise.resolve(end), async () => {});
}

function toEnd({ reason, exitCode, signal }: ExecExit): CommandEnd {
  if (reason === "exited") return { code: exitCode ?? 0 };
  if (reason === "signaled")
    return { signal: constants.signals[signal as NodeJS.Signals] ?? constants.signals.SIGKILL };
  return killed;
}
