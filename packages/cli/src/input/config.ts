import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  absolutePath,
  defaultExecTimeoutMs,
  defaultStateDirectory,
  maxLifetimeMs,
  readEnvironment,
  settingsError,
  wholeNumber,
} from "@slipway/contract";
import { type ProviderName, providerMistake } from "@slipway/sandbox/open";
import { type StorageSettings, storageMistakes, storageRules, storageSettings } from "@slipway/store/objects";
import { z } from "zod";
import type { Environment } from "../terminal/environment.ts";

export interface Settings {
  readonly provider: ProviderName;
  readonly stateDir: string;
  readonly sandboxUid: number | undefined;
  readonly minFreeMb: number | undefined;
  readonly previewPort: number;
  readonly lifetimeMs: number;
  readonly idleMs: number;
  readonly execTimeoutMs: number;
  /** Holds a directory for each installed agent. */
  readonly agentsDir: string;
  /** Where files are kept that outlive their sandbox. */
  readonly storage: StorageSettings;
}

export interface Host {
  readonly isRoot: boolean;
  readonly home: string;
}

const maxLifetimeSeconds = maxLifetimeMs / 1000;

const environmentSchema = z.object({
  SANDBOX_PROVIDER: z.string().optional(),
  SLIPWAY_STATE_DIR: absolutePath.optional(),
  SLIPWAY_AGENTS: absolutePath.optional(),
  SLIPWAY_SANDBOX_UID: wholeNumber(1, 4_294_967_293).optional(),
  SLIPWAY_MIN_FREE_MB: wholeNumber(0, 10_485_760).optional(),
  SANDBOX_PREVIEW_PORT: wholeNumber(1, 65_535).optional().default(3000),
  MODAL_SANDBOX_TTL: wholeNumber(1, maxLifetimeSeconds).optional().default(3600),
  MODAL_SANDBOX_INACTIVITY_MINUTES: wholeNumber(1, maxLifetimeSeconds / 60)
    .optional()
    .default(20),
  SLIPWAY_EXEC_TIMEOUT: wholeNumber(1, maxLifetimeSeconds)
    .optional()
    .default(defaultExecTimeoutMs / 1000),
  MODAL_TOKEN_ID: z.string().optional(),
  MODAL_TOKEN_SECRET: z.string().optional(),
  ...storageRules,
});
type Parsed = z.output<typeof environmentSchema>;

/** All settings, or one error that names every mistake. */
export function readSettings(environment: Environment, host: Host = thisHost()): Settings {
  const { settings, given, mistakes: wrong } = readEnvironment(environmentSchema, environment);
  const together = [...providerMistakes(settings), ...contradictions(settings, given), ...storageMistakes(settings)];
  const mistakes = [...wrong, ...together];
  if (mistakes.length > 0) throw settingsError(mistakes);
  const stateDir = settings.SLIPWAY_STATE_DIR ?? defaultStateDir(environment, host);
  return {
    provider: "local",
    stateDir,
    agentsDir: settings.SLIPWAY_AGENTS ?? join(stateDir, "agents"),
    sandboxUid: settings.SLIPWAY_SANDBOX_UID,
    minFreeMb: settings.SLIPWAY_MIN_FREE_MB,
    previewPort: settings.SANDBOX_PREVIEW_PORT,
    lifetimeMs: settings.MODAL_SANDBOX_TTL * 1000,
    idleMs: settings.MODAL_SANDBOX_INACTIVITY_MINUTES * 60_000,
    execTimeoutMs: settings.SLIPWAY_EXEC_TIMEOUT * 1000,
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

function providerMistakes(settings: Parsed): string[] {
  const mistakes: string[] = [];
  const { MODAL_TOKEN_ID: tokenId, MODAL_TOKEN_SECRET: tokenSecret } = settings;
  if ((tokenId === undefined) !== (tokenSecret === undefined)) {
    const [set, unset] = tokenId ? ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"] : ["MODAL_TOKEN_SECRET", "MODAL_TOKEN_ID"];
    mistakes.push(`${set} is set and ${unset} is not: set both, or none.`);
  }
  if (settings.SANDBOX_PROVIDER === undefined && tokenId && tokenSecret) {
    mistakes.push("Modal's credentials are set, and this version has no modal provider. Set SANDBOX_PROVIDER=local.");
  }
  const mistake = providerMistake(settings.SANDBOX_PROVIDER ?? "local");
  return mistake === undefined ? mistakes : [...mistakes, mistake];
}

function contradictions(settings: Parsed, given: object): string[] {
  const {
    MODAL_SANDBOX_TTL: lifetime,
    SLIPWAY_EXEC_TIMEOUT: timeout,
    MODAL_SANDBOX_INACTIVITY_MINUTES: idle,
  } = settings;
  const show = (name: keyof Parsed, value: string) => `${name} (${value}${name in given ? "" : ", the default"})`;
  const shownLifetime = show("MODAL_SANDBOX_TTL", `${lifetime} s`);
  const mistakes = [];
  if (lifetime < timeout) {
    const shownTimeout = show("SLIPWAY_EXEC_TIMEOUT", `${timeout} s`);
    mistakes.push(`${shownLifetime} is shorter than ${shownTimeout}: a sandbox would end before its commands may.`);
  }
  if (idle * 60 > lifetime) {
    const shownIdle = show("MODAL_SANDBOX_INACTIVITY_MINUTES", `${idle} min`);
    mistakes.push(`${shownIdle} is longer than ${shownLifetime}: a sandbox would never sleep.`);
  }
  return mistakes;
}
