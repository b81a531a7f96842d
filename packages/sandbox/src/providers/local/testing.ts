import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SandboxProvider } from "../../provider.ts";
import { createLocalProvider } from "./index.ts";

export interface LocalSetup extends AsyncDisposable {
  readonly stateDir: string;
  readonly provider: SandboxProvider;
}

/** A provider on a state directory of its own, which goes with all its sandboxes when it is disposed of. */
export function setUpLocal(
  environment: NodeJS.ProcessEnv = process.env,
  tools: Readonly<Record<string, string>> = {},
): LocalSetup {
  const directory = mkdtempSync("/var/tmp/slipway-test-");
  chmodSync(directory, 0o711);
  const stateDir = join(directory, "state");
  const provider = createLocalProvider({ stateDir, environment, tools });
  return {
    stateDir,
    provider,
    async [Symbol.asyncDispose]() {
      for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
      await provider[Symbol.asyncDispose]();
      await endKeeper(stateDir);
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Waits for what it still has to do, such as removing layers. */
async function endKeeper(stateDir: string): Promise<void> {
  for (const pid of keepersOf(stateDir)) process.kill(pid, "SIGTERM");
  while (keepersOf(stateDir).length > 0) await delay(20);
}

/** Pids of the keepers of a state directory: one, or none. */
export function keepersOf(stateDir: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandLine(pid) === `slipway-keeper ${stateDir}`);
}

function commandLine(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return null;
  }
}
