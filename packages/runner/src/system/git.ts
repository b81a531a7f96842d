import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs git and returns its standard output. Fails as `execFile` does: a number as `code` is git's exit code. */
export type Git = (...args: readonly string[]) => Promise<string>;

/** Ignores an error exit of git, and rethrows any other failure. */
export function unlessExit(error: unknown): void {
  if (typeof (error as { code?: unknown } | undefined)?.code !== "number") throw error;
}

/** Removes the locks of a killed git. No other git may use the repository. */
export async function removeLocks(directory: string, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => rm(join(directory, `${name}.lock`), { force: true })));
}

export interface GitOptions {
  /** The repository's directory. */
  readonly directory: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

const maxOutputBytes = 16 * 1024 * 1024;

/** Ignores the settings of user and machine, and the project's hooks and attributes. */
const isolation = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_ATTR_NOSYSTEM: "1", LC_ALL: "C" };
const settings = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.autocrlf=false",
  "core.looseCompression=0",
  "safe.directory=*",
  "gc.auto=0",
].flatMap((setting) => ["-c", setting]);

export function gitIn({ directory, workdir, environment, timeoutMs }: GitOptions): Git {
  return async (...args) => {
    const { stdout } = await run("git", [...settings, ...args], {
      cwd: workdir,
      env: { ...environment, ...isolation, GIT_DIR: directory, GIT_WORK_TREE: workdir },
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      maxBuffer: maxOutputBytes,
    });
    return stdout;
  };
}
