import { type ExecExit, type ExecRequestInput, hasCode, SlipwayError } from "@slipway/contract";
import type { CallOptions, Exec, RestrictedSandbox, SandboxFiles } from "./provider.ts";

export interface RunOptions extends CallOptions, Omit<ExecRequestInput, "argv" | "shell" | "stdin" | "pty"> {
  /** Written to standard input, which then ends. */
  readonly input?: Uint8Array | string;
  /** How much to keep of each stream; the rest is read and dropped. */
  readonly maxBytes?: number;
  /** Which part of a longer stream to keep; by default the beginning. */
  readonly keep?: "beginning" | "end";
}

export interface RunResult {
  readonly exit: ExecExit;
  /** Null unless the command exited by itself. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** A stream had more than `maxBytes`. */
  readonly truncated: boolean;
}

const defaultRunBytes = 8 * 1024 * 1024;

/** Runs a command to its end: an argv, or a text for `sh -c`. Decodes output as UTF-8, with replacement characters. */
export async function run(
  sandbox: Pick<RestrictedSandbox, "exec">,
  command: readonly string[] | string,
  options: RunOptions = {},
): Promise<RunResult> {
  const { signal, input, maxBytes = defaultRunBytes, keep = "beginning", ...request } = options;
  const call = { signal };
  const what = typeof command === "string" ? { shell: command } : { argv: [...command] };
  await using exec = await sandbox.exec({ ...request, ...what, stdin: input === undefined ? "none" : "open" }, call);
  const streams = { stdout: new Kept(maxBytes, keep), stderr: new Kept(maxBytes, keep) };
  const collect = async () => {
    for await (const chunk of exec.output(call)) {
      if (chunk.type !== "output_truncated") streams[chunk.type].add(chunk.data);
    }
  };
  await Promise.all([collect(), input === undefined ? undefined : feed(exec, input, call)]);
  const exit = await exec.wait(call);
  return {
    exit,
    exitCode: exit.exitCode,
    stdout: streams.stdout.text(),
    stderr: streams.stderr.text(),
    truncated: streams.stdout.truncated || streams.stderr.truncated,
  };
}

export async function readBytes(
  files: Pick<SandboxFiles, "read">,
  path: string,
  options: CallOptions & { maxBytes?: number } = {},
): Promise<Uint8Array> {
  const { maxBytes = defaultRunBytes, ...call } = options;
  const kept = new Kept(maxBytes);
  for await (const chunk of files.read(path, call)) {
    kept.add(chunk);
    if (kept.truncated) throw new SlipwayError("too_large", `${path} has more than ${maxBytes} bytes.`);
  }
  return kept.bytes();
}

export async function readText(
  files: Pick<SandboxFiles, "read">,
  path: string,
  options: CallOptions & { maxBytes?: number } = {},
): Promise<string> {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await readBytes(files, path, options));
}

/** A command may end without reading its input. */
async function feed(exec: Exec, input: Uint8Array | string, call: CallOptions): Promise<void> {
  try {
    await exec.write(input, call);
    await exec.end(call);
  } catch (error) {
    if (!hasCode(error, "exec_ended")) throw error;
  }
}

class Kept {
  truncated = false;
  readonly #chunks: Uint8Array[] = [];
  readonly #maxBytes: number;
  readonly #keep: RunOptions["keep"];
  #bytes = 0;

  constructor(maxBytes: number, keep: RunOptions["keep"] = "beginning") {
    this.#maxBytes = maxBytes;
    this.#keep = keep;
  }

  add(data: Uint8Array): void {
    const room = Math.max(0, this.#maxBytes - this.#bytes);
    if (data.length > room) this.truncated = true;
    const part = this.#keep === "end" ? data : data.subarray(0, room);
    if (part.length > 0) this.#chunks.push(part);
    this.#bytes += part.length;
    // At twice the size, so that small pieces are not copied again and again.
    if (this.#bytes > 2 * this.#maxBytes) {
      const kept = this.bytes();
      this.#chunks.splice(0, Number.POSITIVE_INFINITY, kept);
      this.#bytes = kept.length;
    }
  }

  bytes(): Uint8Array {
    const kept = Buffer.concat(this.#chunks);
    return this.#keep === "end" ? kept.subarray(Math.max(0, kept.length - this.#maxBytes)) : kept;
  }

  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes());
  }
}
