import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { absolutePath, defaultStateDirectory, readEnvironment, settingsError } from "@slipway/contract";
import { readSandboxSettings, type SandboxSettings } from "@slipway/sandbox/settings";
import { type StorageSettings, storageMistakes, storageRules, storageSettings } from "@slipway/store/objects";
import { z } from "zod";
import type { Environment } from "../terminal/environment.ts";

export interface Settings extends SandboxSettings {
  readonly stateDir: string;
  /** Holds a directory for each installed agent. */
  readonly agentsDir: string;
  /** Where files are kept that outlive their sandbox. */
  readonly storage: StorageSettings;
}

export interface Host {
  readonly isRoot: boolean;
  readonly home: string;
}

const environmentSchema = z.object({
  SLIPWAY_STATE_DIR: absolutePath.optional(),
  SLIPWAY_AGENTS: absolutePath.optional(),
  ...storageRules,
});

/** All settings, or one error that names every mistake. */
export function readSettings(environment: Environment, host: Host = thisHost()): Settings {
  const { settings, mistakes } = readEnvironment(environmentSchema, environment);
  const sandboxes = readSandboxSettings(environment);
  const wrong = [...mistakes, ...sandboxes.mistakes, ...storageMistakes(settings)];
  if (wrong.length > 0) throw settingsError(wrong);
  const stateDir = settings.SLIPWAY_STATE_DIR ?? defaultStateDir(environment, host);
  return {
    ...sandboxes.settings,
    stateDir,
    agentsDir: settings.SLIPWAY_AGENTS ?? join(stateDir, "agents"),
    storage: storageSettings(settings, stateDir),
  };
}

function thisHost(): Host {
  return { isRoot: process.getuid?.() === 0, home: homedir() };
}

/** Where the server is that builds are asked of; its other settings are its own to read. */
export function readStateDir(environment: Environment, host: Host = thisHost()): string {
  const { settings, mistakes } = readEnvironment(environmentSchema.pick({ SLIPWAY_STATE_DIR: true }), environment);
  if (mistakes.length > 0) throw settingsError(mistakes);
  return settings.SLIPWAY_STATE_DIR ?? defaultStateDir(environment, host);
}

function defaultStateDir(environment: Environment, host: Host): string {
  return defaultStateDirectory({ ...host, dataHome: environment.XDG_DATA_HOME });
}
