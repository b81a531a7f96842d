import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import {
  absolutePath,
  type BuildSettings,
  decimalNumber,
  defaultStateDirectory,
  type Environment,
  isKernelPath,
  microUsdPerUsd,
  readEnvironment,
  SlipwayError,
  serverFiles,
  settingsError,
  wholeNumber,
} from "@slipway/contract";
import { readSandboxSettings, type SandboxSettings } from "@slipway/sandbox/settings";
import { redisRules } from "@slipway/store/bridge";
import { z } from "zod";
import type { ServerSettings } from "./compose.ts";
import type { RemoteSettings } from "./work/merging/remote.ts";
import { readModelSettings } from "./work/planning/open-models.ts";

/** All settings of the server's program. */
export interface ServerConfig extends Omit<ServerSettings, "name"> {
  /** Undefined: the name kept in the state directory. */
  readonly name: string | undefined;
  readonly socketPath: string;
  /** Resources that no other server may use, each with the path of its lock. */
  readonly locks: readonly { readonly path: string; readonly what: string }[];
  /** Holds a directory for each installed agent. */
  readonly agentsDirectory: string;
  readonly sandboxes: SandboxSettings<"simulated">;
  /** Null: attempts run in real sandboxes. */
  readonly simulation: { readonly speed: number } | null;
  /** Undefined: main is not pushed. */
  readonly remote: RemoteSettings | undefined;
  readonly environment: Environment;
}

export interface Host {
  readonly isRoot: boolean;
  readonly home: string;
}

/** The only place that reads process.env. */
export function readProcessConfig(): ServerConfig {
  return readConfig(process.env, {
    isRoot: process.getuid?.() === 0,
    // A user may have no home directory, so this is read only if it is needed.
    get home() {
      try {
        return homedir();
      } catch {
        throw settingsError(["SLIPWAY_STATE_DIR: is not set, and this user has no home directory."]);
      }
    },
  });
}

/** The error does not repeat the address: it may contain a password. */
const address = (example: string, schemes: readonly string[]) =>
  z
    .string()
    .refine((text) => schemes.includes(URL.parse(text)?.protocol ?? ""), `expected an address such as ${example}`);

/** Whether git takes it as an address without a password or token, which git would print in its messages. */
function isRemote(text: string): boolean {
  if (/^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:\S+$/.test(text)) return true;
  const url = URL.parse(text);
  if (url === null || url.password !== "") return false;
  return url.protocol === "ssh:" || (["https:", "file:"].includes(url.protocol) && url.username === "");
}

const databaseSchemes = ["postgres:", "postgresql:", "libsql:", "https:", "http:"];
const maxSocketPath = 107;

const environmentSchema = z.object({
  SLIPWAY_STATE_DIR: absolutePath
    .refine((path) => join(path, serverFiles.socket).length <= maxSocketPath, "the path is too long for a socket in it")
    .optional(),
  SLIPWAY_SERVER_NAME: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, "expected up to 64 letters and digits")
    .optional(),
  SLIPWAY_SERVER_HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:-]{1,253}$/, "expected a name or an address of this machine")
    .optional(),
  SLIPWAY_AGENTS: absolutePath.optional(),
  SLIPWAY_PUSH_URL: z
    .string()
    .refine(isRemote, "expected an https, ssh or file address without a password or a token, or user@host:path")
    .optional(),
  SLIPWAY_PULL_REQUEST_COMMAND: z
    .string()
    .refine(isAbsolute, { error: ({ input }) => `"${input}" is not the absolute path of a program` })
    .optional(),
  SLIPWAY_SIMULATION_SPEED: decimalNumber(0.001, 1_000_000).default(1),
  DATABASE_URL: z
    .string()
    .refine(
      (text) =>
        (/^file:\/[^\0]+$/.test(text) && !isKernelPath(text.slice("file:".length))) ||
        databaseSchemes.includes(URL.parse(text)?.protocol ?? ""),
      "expected file:/absolute/path, postgres://host/name or libsql://host",
    )
    .optional(),
  SLIPWAY_DATABASE_TOKEN: z.string().optional(),
  REDIS_URL: z.string().refine(redisRules.url.isRight, redisRules.url.expected).optional(),
  REDIS_SANDBOX_PREFIX: z.string().refine(redisRules.prefix.isRight, redisRules.prefix.expected).optional(),
  RESTATE_URL: address("http://host:8080", ["http:", "https:", "unix:"]).optional(),
  RESTATE_ADMIN_URL: address("http://host:9070", ["http:", "https:", "unix:"]).optional(),
  SLIPWAY_RESTATE_KEY: z
    .string()
    .regex(/^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,44}$/, "expected what Restate logs as its public key, publickeyv1_...")
    .optional(),
  MAX_PARALLEL_SANDBOXES: wholeNumber(1, 1000).default(5),
  SLIPWAY_FLEET_SLOTS: wholeNumber(1, 100_000).optional(),
  BUILD_TIMEOUT_HOURS: decimalNumber(0.02, 720).default(24),
  BUILD_BUDGET_USD: decimalNumber(0.01, 1_000_000).default(100),
  BUILD_CHECKPOINT_INTERVAL: wholeNumber(10, 86_400).default(300),
});
type Parsed = z.output<typeof environmentSchema>;

/** Reads all settings; throws one error that names every mistake. */
export function readConfig(environment: Environment, host: Host): ServerConfig {
  const { settings, given, mistakes: wrong } = readEnvironment(environmentSchema, environment);
  const stateDirectory =
    settings.SLIPWAY_STATE_DIR ?? defaultStateDirectory({ ...host, dataHome: environment["XDG_DATA_HOME"] });
  const models = collect(() => readModelSettings(environment, stateDirectory));
  const { settings: sandboxes, mistakes: ofSandboxes } = readSandboxSettings(environment, ["simulated"]);
  const contradicting = [...contradictions(settings, given), ...contradictionsWith(sandboxes, settings, given)];
  const mistakes = [...wrong, ...ofSandboxes, ...contradicting, ...models.mistakes];
  if (mistakes.length > 0 || models.value === undefined) throw settingsError(mistakes);
  const database = databaseOf(settings, stateDirectory);
  return {
    stateDirectory,
    database,
    environment,
    models: models.value,
    name: settings.SLIPWAY_SERVER_NAME,
    redis:
      settings.REDIS_URL === undefined ? undefined : { url: settings.REDIS_URL, prefix: settings.REDIS_SANDBOX_PREFIX },
    restate: restateOf(settings),
    slots: fleetSlots(settings),
    buildDefaults: buildDefaults(settings),
    sandboxes,
    remote: remoteOf(settings),
    agentsDirectory: settings.SLIPWAY_AGENTS ?? join(stateDirectory, "agents"),
    provider: sandboxes.provider,
    simulation: sandboxes.provider === "simulated" ? { speed: settings.SLIPWAY_SIMULATION_SPEED } : null,
    socketPath: join(stateDirectory, serverFiles.socket),
    locks: locksOf(stateDirectory, database.url),
  };
}

function collect<T>(read: () => T): { readonly value?: T; readonly mistakes: readonly string[] } {
  try {
    return { value: read(), mistakes: [] };
  } catch (error) {
    if (!(error instanceof SlipwayError) || error.code !== "invalid_settings") throw error;
    const [, ...lines] = error.message.split("\n");
    return { mistakes: lines.map((line) => line.replace(/^- /, "")) };
  }
}

function databaseOf(settings: Parsed, stateDirectory: string): ServerSettings["database"] {
  const url = settings.DATABASE_URL ?? `file:${join(stateDirectory, "slipway.db")}`;
  return { url, authToken: settings.SLIPWAY_DATABASE_TOKEN };
}

/** A database file belongs to one server; a database on the network may be shared. */
function locksOf(stateDirectory: string, url: string): ServerConfig["locks"] {
  const own = { path: join(stateDirectory, serverFiles.lock), what: `the state directory ${stateDirectory}` };
  if (!url.startsWith("file:")) return [own];
  const path = url.slice("file:".length);
  return [own, { path: `${path}.lock`, what: `the database ${path}` }];
}

function restateOf(settings: Parsed): ServerSettings["restate"] {
  const { RESTATE_URL: url, RESTATE_ADMIN_URL: adminUrl, SLIPWAY_RESTATE_KEY: identityKey } = settings;
  if (url === undefined || identityKey === undefined) return undefined;
  return { url, adminUrl, identityKey, host: settings.SLIPWAY_SERVER_HOST };
}

function remoteOf(settings: Parsed): RemoteSettings | undefined {
  const { SLIPWAY_PUSH_URL: pushUrl, SLIPWAY_PULL_REQUEST_COMMAND: pullRequestCommand } = settings;
  return pushUrl === undefined ? undefined : { pushUrl, pullRequestCommand };
}

function buildDefaults(settings: Parsed): Partial<BuildSettings> {
  return {
    slots: settings.MAX_PARALLEL_SANDBOXES,
    timeoutMs: Math.round(settings.BUILD_TIMEOUT_HOURS * hourMs),
    budgetMicroUsd: Math.round(settings.BUILD_BUDGET_USD * microUsdPerUsd),
    checkpointMs: settings.BUILD_CHECKPOINT_INTERVAL * 1000,
  };
}

const hourMs = 3_600_000;

function fleetSlots({ SLIPWAY_FLEET_SLOTS: slots, MAX_PARALLEL_SANDBOXES: ofOne }: Parsed): number {
  return slots ?? Math.max(20, ofOne);
}

function contradictions(settings: Parsed, given: object): string[] {
  const mistakes: string[] = [];
  const show = (name: keyof Parsed & string, value: string) =>
    `${name} (${value}${name in given ? "" : ", the default"})`;
  const { MAX_PARALLEL_SANDBOXES: ofOne, BUILD_TIMEOUT_HOURS: hours, BUILD_CHECKPOINT_INTERVAL: seconds } = settings;
  if (fleetSlots(settings) < ofOne) {
    const fleet = show("SLIPWAY_FLEET_SLOTS", String(settings.SLIPWAY_FLEET_SLOTS));
    mistakes.push(
      `${fleet} is less than ${show("MAX_PARALLEL_SANDBOXES", String(ofOne))}: no build could use that many.`,
    );
  }
  if (seconds * 1000 > hours * hourMs) {
    const interval = show("BUILD_CHECKPOINT_INTERVAL", `${seconds} s`);
    mistakes.push(
      `${interval} is longer than ${show("BUILD_TIMEOUT_HOURS", `${hours} h`)}: there would be no checkpoint.`,
    );
  }
  for (const [name, needed] of needs) {
    if (name in given && !(needed in given)) mistakes.push(`${name} is set and ${needed} is not: set both or neither.`);
  }
  return mistakes;
}

function contradictionsWith({ provider, modal }: SandboxSettings<string>, settings: Parsed, given: object): string[] {
  const mistakes: string[] = [];
  if ("SLIPWAY_SIMULATION_SPEED" in given && provider !== "simulated") {
    mistakes.push("SLIPWAY_SIMULATION_SPEED is set and SANDBOX_PROVIDER is not simulated: set both or neither.");
  }
  if (provider === "modal" && modal !== undefined && modal.maxConcurrent < settings.MAX_PARALLEL_SANDBOXES) {
    const ofOne = `MAX_PARALLEL_SANDBOXES (${settings.MAX_PARALLEL_SANDBOXES})`;
    mistakes.push(`MODAL_MAX_CONCURRENT (${modal.maxConcurrent}) is less than ${ofOne}: no build could use that many.`);
  }
  return mistakes;
}

/** Settings that are meaningless without another one. */
const needs = [
  // Without the key, anyone who reaches the handlers could drive builds.
  ["RESTATE_URL", "SLIPWAY_RESTATE_KEY"],
  ["RESTATE_ADMIN_URL", "RESTATE_URL"],
  ["SLIPWAY_RESTATE_KEY", "RESTATE_URL"],
  ["SLIPWAY_SERVER_HOST", "RESTATE_URL"],
  ["REDIS_SANDBOX_PREFIX", "REDIS_URL"],
  ["SLIPWAY_DATABASE_TOKEN", "DATABASE_URL"],
  ["SLIPWAY_PULL_REQUEST_COMMAND", "SLIPWAY_PUSH_URL"],
] as const;
