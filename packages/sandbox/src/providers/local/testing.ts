import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SandboxProvider } from "../../provider.ts";
import { createLocalProvider } from "./index.ts";

export interface LocalSetup extends AsyncDisposable {
  readonly stateDir: string;
  readonly provider: SandboxProvider;
}

/** A provider on a state directory of its own, which goes with all its sandboxes when it is disposed of. */
export function setUpLocal(environment: NodeJS.ProcessEnv = process.env): LocalSetup {
  const directory = mkdtempSync("/var/tmp/slipway-test-");
  chmodSync(directory, 0o711);
  const stateDir = join(directory, "state");
  const provider = createLocalProvider({ stateDir, environment });
  return {
    stateDir,
    provider,
    async [Symbol.asyncDispose]() {
      for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
      await provider[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
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
