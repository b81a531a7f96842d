import { isUtf8 } from "node:buffer";
import { constants } from "node:os";
import { type ExecChunk, type ExecExit, execLogLimitBytes } from "@slipway/contract";
import type { Exec } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { ownFailure } from "../../../input/failure.ts";
import { type StreamOptions, streamExec } from "./stream.ts";

/** Shows a program until its end, as streams or as one JSON document, and returns its exit code. */
export async function reportExec(context: Context, exec: Exec, options: StreamOptions): Promise<number> {
  if (context.json) {
    const { take, collected } = collector();
    const exit = await streamExec(context, exec, options, take);
    await context.result({ execId: exec.id, exit, ...collected() }, "");
    return exitCodeOf(exit);
  }
  const exit = await streamExec(context, exec, options, (chunk) => passOn(context, chunk));
  const explained = explainExit(exit);
  if (explained) await context.note(`slipway: ${explained}`);
  return exitCodeOf(exit);
}

async function passOn(context: Context, chunk: ExecChunk): Promise<void> {
  if (chunk.type === "stdout") await context.out.write(chunk.data);
  else if (chunk.type === "stderr") await context.err.write(chunk.data);
  else await context.note("slipway: the output log is full; later output was not kept");
}

/** Collects a program's output for a JSON document, up to the limit of a kept log. */
function collector() {
  const chunks: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  let bytes = 0;
  let truncated = false;
  return {
    async take(chunk: ExecChunk) {
      if (chunk.type === "output_truncated" || bytes + chunk.data.length > execLogLimitBytes) {
        truncated = true;
        return;
      }
      bytes += chunk.data.length;
      chunks[chunk.type].push(chunk.data);
    },
    collected() {
      const [stdout, stderr] = [asText(chunks.stdout), asText(chunks.stderr)];
      return {
        stdout: stdout.text,
        stdoutEncoding: stdout.encoding,
        stderr: stderr.text,
        stderrEncoding: stderr.encoding,
        truncated,
      };
    },
  };
}

function asText(chunks: readonly Uint8Array[]) {
  const bytes = Buffer.concat(chunks);
  const encoding = isUtf8(bytes) ? "utf8" : "base64";
  return { text: bytes.toString(encoding), encoding };
}

const timeoutExit = 124;

/** The exit code that a shell would show for the same end. */
function exitCodeOf(exit: ExecExit): number {
  switch (exit.reason) {
    case "exited":
      return exit.exitCode ?? ownFailure;
    case "timeout":
      return timeoutExit;
    case "signaled":
    case "killed":
    case "out_of_memory":
      return 128 + signalNumber(exit.signal ?? "SIGKILL");
    case "lost":
      return ownFailure;
  }
}

function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return numbers[name] ?? constants.signals.SIGKILL;
}

/** What a person should know about an end beyond its exit code. */
function explainExit({ reason }: ExecExit): string | undefined {
  switch (reason) {
    case "timeout":
      return "the program timed out; --timeout changes the limit";
    case "out_of_memory":
      return "the program was killed because the sandbox ran out of memory";
    case "lost":
      return "nobody observed the program's end: do not assume success";
    case "killed":
      return "the program was killed";
    case "exited":
    case "signaled":
      return undefined;
  }
}
