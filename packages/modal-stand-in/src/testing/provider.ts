import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";
import { type ModalStandIn, startModalStandIn } from "../stand-in.ts";

export interface ModalSetup extends AsyncDisposable {
  readonly standIn: ModalStandIn;
  readonly provider: SandboxProvider;
  readonly stateDir: string;
  /** Another provider on the same state, or on one of its own. */
  open(environment?: Readonly<Record<string, string>>, stateDir?: string): Promise<SandboxProvider>;
  keepers(stateDir?: string): Promise<number[]>;
}

export interface ModalSetupOptions {
  readonly tools?: Readonly<Record<string, string>>;
  /** Settings, besides those that point at the stand-in. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The provider on Modal against a stand-in. When it is disposed of, nothing may run there. */
export async function openModal({ tools = {}, environment = {} }: ModalSetupOptions = {}): Promise<ModalSetup> {
  const standIn = await startModalStandIn();
  const directory = mkdtempSync("/var/tmp/slipway-modal-test-");
  const stateDir = join(directory, "state");
  const open = (own: Readonly<Record<string, string>> = {}, at = stateDir) =>
    openOn(at, { ...standIn.environment, SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile, ...environment, ...own }, tools);
  const provider = await open();
  return {
    standIn,
    provider,
    stateDir,
    open,
    keepers: (at = stateDir) => keepersOf(at),
    async [Symbol.asyncDispose]() {
      for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
      await provider[Symbol.asyncDispose]();
      for (const pid of await keepersOf(directory)) process.kill(pid, "SIGTERM");
      while ((await keepersOf(directory)).length > 0) await delay(20);
      await standIn[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export async function openOn(
  stateDir: string,
  environment: Readonly<Record<string, string>>,
  tools: Readonly<Record<string, string>> = {},
): Promise<SandboxProvider> {
  const { settings } = readSandboxSettings({ SANDBOX_PROVIDER: "modal", ...environment });
  return await openProvider({ ...settings, stateDir, tools, environment: process.env });
}

/** Pids of the keepers at or below a directory. */
async function keepersOf(directory: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const titles = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, index) => titles[index]?.startsWith(`slipway-keeper ${directory}`)).map(Number);
}
