import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Environment, settingsError } from "@slipway/contract";
import {
  type ConformanceSubject,
  type ConformanceTarget,
  conformanceTools,
  spawnCoordinator,
} from "../../../conformance/index.ts";
import type { SandboxProvider } from "../../../provider.ts";
import { openProvider } from "../../open.ts";
import { readSandboxSettings, withoutCredentials } from "../../settings.ts";
import { modalCapabilities } from "../index.ts";

/** Opens the provider on Modal as programs do, by its settings. */
export async function openByEnvironment(environment: Environment, stateDir: string): Promise<SandboxProvider> {
  const { settings } = modalSettingsOf(environment);
  return await openProvider({ ...settings, provider: "modal", stateDir, environment, tools: conformanceTools });
}

/** All mistakes at once, as programs tell them. */
export function modalSettingsOf(environment: Environment) {
  const { settings, mistakes } = readSandboxSettings({ ...environment, SANDBOX_PROVIDER: "modal" });
  if (mistakes.length > 0) throw settingsError(mistakes);
  const { modal } = settings;
  if (modal === undefined) throw settingsError([withoutCredentials]);
  return { settings, modal };
}

/**
 * What the conformance suite needs of an account, be it real or the stand-in's. Processes that the suite starts have this
 * one's environment, so it must hold the same settings.
 */
export function modalSubject(environment: Environment): ConformanceSubject {
  return {
    capabilities: modalCapabilities,
    async setup() {
      using parts = new DisposableStack();
      const scratch = parts.use(makeScratch());
      const provider = await openByEnvironment(environment, scratch.stateDir);
      parts.move();
      return targetOf(provider, scratch);
    },
  };
}

interface Scratch extends Disposable {
  readonly stateDir: string;
}

export function makeScratch(): Scratch {
  const directory = mkdtempSync("/var/tmp/slipway-account-");
  chmodSync(directory, 0o711);
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  return { stateDir: join(directory, "state"), [Symbol.dispose]: remove };
}

/** The account may have other sandboxes: only those of this state directory are looked at and ended. */
function targetOf(provider: SandboxProvider, { stateDir, ...scratch }: Scratch): ConformanceTarget {
  return {
    provider,
    otherCoordinator: () => spawnCoordinator(new URL("coordinator-fixture.ts", import.meta.url), [stateDir]),
    async [Symbol.asyncDispose]() {
      await removeAll(provider);
      await provider[Symbol.asyncDispose]();
      scratch[Symbol.dispose]();
    },
  };
}

export async function removeAll(provider: SandboxProvider): Promise<void> {
  for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  for (const { id } of await provider.snapshots.list()) await provider.snapshots.delete(id);
}
