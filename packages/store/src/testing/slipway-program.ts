import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../../../bin/slipway", import.meta.url));

export interface SlipwayProgram extends AsyncDisposable {
  /** A directory of its own, for whatever the test keeps. */
  readonly directory: string;
  /** Answers the standard output; fails with the standard error. */
  run(...argv: string[]): Promise<string>;
  start(...argv: string[]): ChildProcess;
}

/** The command line as a user runs it, with a state directory of its own. */
export function openSlipway(settings: Readonly<Record<string, string>>): SlipwayProgram {
  const directory = mkdtempSync("/var/tmp/slipway-storage-");
  // As root, sandboxes run as another user, who must be able to pass through.
  chmodSync(directory, 0o711);
  const env = { ...process.env, SANDBOX_PROVIDER: "local", SLIPWAY_STATE_DIR: join(directory, "state"), ...settings };
  const start = (...argv: string[]) =>
    spawn(process.execPath, [program, ...argv], { env, cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
  const run = async (...argv: string[]) => {
    const child = start(...argv);
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    if (child.exitCode !== 0) throw new Error(`slipway ${argv.join(" ")} ended with ${child.exitCode}: ${stderr}`);
    return stdout.trimEnd();
  };
  return {
    directory,
    run,
    start,
    async [Symbol.asyncDispose]() {
      await run("sandbox", "rm", "--all");
      // It writes to the state directory until it has ended, which it does soon after its last sandbox.
      while (hasKeeper(join(directory, "state"))) await sleep(50);
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function hasKeeper(stateDir: string): boolean {
  return readdirSync("/proc").some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`slipway-keeper ${stateDir}`);
    } catch {
      return false;
    }
  });
}
