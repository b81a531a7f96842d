import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SlipwayError } from "@slipway/contract";

/** The git program on one bare repository, in an environment that cannot make it run other programs or prompt. */
export interface Git {
  readonly directory: string;
  /** Returns the whole output. Fails with `git_failed` on an unexpected exit code. */
  run(args: readonly string[], options?: GitOptions): Promise<GitAnswer>;
  /** Yields output as it comes and returns the exit code. Kills git when the reader stops. */
  stream(args: readonly string[], options?: GitOptions): AsyncGenerator<Buffer, number, undefined>;
  /** The same repository with more variables: other objects, an index, a work tree. */
  with(variables: Readonly<Record<string, string>>): Git;
}

export interface GitAnswer {
  readonly exitCode: number;
  readonly stdout: Buffer;
}

export interface GitOptions {
  readonly input?: AsyncIterable<Uint8Array> | Uint8Array | string | undefined;
  readonly expected?: readonly number[];
  readonly timeMs?: number;
  readonly outputBytes?: number;
  readonly signal?: AbortSignal | undefined;
  /** A lock file that the process itself holds, so that any end of the process frees it. */
  readonly lock?: string;
}

export interface GitSettings {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Git failed on its own, by a signal or by one of our limits. Its input may be the reason. */
export class GitFailed extends SlipwayError {
  readonly reason: "exit" | "crash" | "time" | "output";
  readonly complaint: string;

  constructor(reason: GitFailed["reason"], message: string, complaint: string) {
    super("git_failed", complaint === "" ? message : `${message}: ${complaint}`);
    this.reason = reason;
    this.complaint = complaint;
  }
}

const mebibyte = 1024 ** 2;
const usualTimeMs = 60_000;
const usualOutputBytes = 64 * mebibyte;
const complaintBytes = 4096;

/** A bundle of a few kilobytes can request terabytes of memory. */
const processLimits = [`--as=${4096 * mebibyte}`, "--cpu=300", "--core=0"];

const settings = {
  "attr.tree": "none",
  "core.alternateRefsCommand": "",
  "core.askPass": "",
  "core.attributesFile": "/dev/null",
  "core.excludesFile": "/dev/null",
  "core.fsmonitor": "false",
  "core.fsync": "committed,reference",
  "core.hooksPath": "/dev/null",
  "core.packedGitLimit": "512m",
  "core.packedGitWindowSize": "64m",
  "core.quotePath": "false",
  "credential.helper": "",
  "diff.external": "",
  "diff.renameLimit": "1000",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "merge.renameLimit": "1000",
  "pack.threads": "1",
  "protocol.allow": "never",
  "submodule.recurse": "false",
  "tar.umask": "0022",
};

const quietVariables = {
  LC_ALL: "C",
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
};

export function createGit(
  { directory, environment }: GitSettings,
  variables: Readonly<Record<string, string>> = {},
): Git {
  const { PATH = "/usr/bin:/bin" } = environment;
  const env = { PATH, ...quietVariables, GIT_DIR: directory, ...variables };
  const git: Git = {
    directory,
    stream: (args, options = {}) => streamed(env, args, options),
    async run(args, options = {}) {
      const chunks: Buffer[] = [];
      const process = streamed(env, args, options);
      for (;;) {
        const { done, value } = await process.next();
        if (done) return { exitCode: value, stdout: Buffer.concat(chunks) };
        chunks.push(value);
      }
    },
    with: (more) => createGit({ directory, environment }, { ...variables, ...more }),
  };
  return git;
}

async function* streamed(
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  { input, expected = [0], timeMs = usualTimeMs, outputBytes = usualOutputBytes, signal, lock }: GitOptions,
): AsyncGenerator<Buffer, number, undefined> {
  if (signal?.aborted) throw aborted(signal);
  const name = `git ${args.find((arg) => !arg.startsWith("-")) ?? ""}`;
  const given = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const limited = ["prlimit", ...processLimits, "git", ...given, ...args];
  const [program = "", ...rest] =
    lock === undefined ? limited : ["flock", "--no-fork", "--wait", "30", lock, ...limited];
  const child = spawn(program, rest, { env, cwd: "/", stdio: ["pipe", "pipe", "pipe"] });
  let failure: unknown;
  const end = (reason: unknown) => {
    failure ??= reason;
    child.kill("SIGKILL");
  };
  const closed = new Promise<{ code: number | null; by: string | null }>((resolve, reject) => {
    child
      .once("error", (error) => reject(notStarted(program, error)))
      .once("close", (code, by) => resolve({ code, by }));
  });
  // Awaited below; a process that cannot start fails earlier.
  closed.catch(() => {});
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => {
    if (complaint.length < complaintBytes) complaint += chunk.toString("utf8").slice(0, complaintBytes);
  });
  const abort = () => end(signal && aborted(signal));
  signal?.addEventListener("abort", abort, { once: true });
  const timer = setTimeout(() => end(new GitFailed("time", `${name} took more than ${timeMs} ms`, "")), timeMs);
  const source = feed(child.stdin, input, end);
  try {
    let bytes = 0;
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > outputBytes) {
        end(new GitFailed("output", `${name} wrote more than ${outputBytes} bytes`, ""));
        break;
      }
      yield chunk;
    }
    const { code, by } = await closed;
    if (failure !== undefined) throw failure;
    if (code !== null && expected.includes(code)) return code;
    // The complaint may quote names chosen by a sandbox.
    throw failed(name, code, by, complaint.replace(/[\p{Cc}\p{Cf}]+/gu, " ").trim());
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    source?.destroy();
    child.kill("SIGKILL");
    await closed.catch(() => {});
  }
}

/** Ignores that git stops reading early, as git itself reports why. A failure of the source ends git. */
function feed(
  stdin: NodeJS.WritableStream,
  input: GitOptions["input"],
  end: (reason: unknown) => void,
): Readable | undefined {
  stdin.on("error", () => {});
  if (input === undefined || typeof input === "string" || input instanceof Uint8Array) {
    stdin.end(input ?? "");
    return undefined;
  }
  async function* watched(chunks: AsyncIterator<Uint8Array>) {
    try {
      for (;;) {
        const { done, value } = await chunks.next().catch((error: unknown) => {
          end(error);
          throw error;
        });
        if (done) return;
        yield value;
      }
    } finally {
      await chunks.return?.();
    }
  }
  const source = Readable.from(watched(input[Symbol.asyncIterator]()));
  pipeline(source, stdin).catch(() => {});
  return source;
}

function failed(name: string, code: number | null, by: string | null, complaint: string): SlipwayError {
  if (/no space left on device/i.test(complaint)) return new SlipwayError("out_of_disk", `${name}: ${complaint}`);
  if (by !== null) return new GitFailed("crash", `${name} crashed (${by})`, complaint);
  return new GitFailed("exit", `${name} ended with ${code}`, complaint);
}

function notStarted(program: string, error: Error): SlipwayError {
  return new SlipwayError("component_missing", `${program} cannot be started: ${error.message}`, { cause: error });
}

function aborted(signal: AbortSignal): SlipwayError {
  return new SlipwayError("aborted", "git was aborted by its caller", { cause: signal.reason });
}
