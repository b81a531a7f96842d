import { type ChildProcessByStdio, spawn } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../../../../", import.meta.url));
export const binPath = join(repository, "bin", "slipway");

export interface BinRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stdoutBytes: Buffer;
  readonly stderr: string;
}

/** The installed program with a state directory of its own, as a user runs it. */
export interface Bin extends AsyncDisposable {
  readonly stateDir: string;
  readonly environment: NodeJS.ProcessEnv;
  /** `more`: variables beside those of the environment. */
  run(argv: readonly string[], input?: Uint8Array | string, more?: NodeJS.ProcessEnv): Promise<BinRun>;
  start(argv: readonly string[], more?: NodeJS.ProcessEnv): ChildProcessByStdio<Writable, Readable, Readable>;
}

export async function openBin(settings: NodeJS.ProcessEnv = {}): Promise<Bin> {
  const directory = await mkdtemp("/var/tmp/slipway-cli-");
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const stateDir = join(directory, "state");
  const environment = { ...process.env, SLIPWAY_STATE_DIR: stateDir, SANDBOX_PROVIDER: "local", ...settings };
  const start = (argv: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    spawn(process.execPath, [binPath, ...argv], { env: { ...environment, ...more }, stdio: ["pipe", "pipe", "pipe"] });
  const run = async (argv: readonly string[], input: Uint8Array | string = "", more?: NodeJS.ProcessEnv) => {
    const child = start(argv, more);
    // A command that does not read its input may be gone before it is written.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const code = new Promise<number | null>((resolve) => child.on("close", (exitCode) => resolve(exitCode)));
    const [stdoutBytes, stderr] = await Promise.all([buffer(child.stdout), text(child.stderr)]);
    return { code: await code, stdout: stdoutBytes.toString(), stdoutBytes, stderr };
  };
  return {
    stateDir,
    environment,
    run,
    start,
    async [Symbol.asyncDispose]() {
      await run(["sandbox", "rm", "--all"]);
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
