import { type ModelRole, modelRoles, SlipwayError, settingsError } from "@slipway/contract";
import { z } from "zod";
import { type Endpoint, readEndpoints, type ScriptedAddress } from "./endpoints.ts";
import { type Collect, type Given, mistake } from "./mistakes.ts";
import { type PriceTable, readPrices } from "./prices.ts";

export interface GatewaySettings {
  /** `provider/model` for each role. */
  readonly models: Readonly<Record<ModelRole, string>>;
  readonly endpoints: readonly Endpoint[];
  readonly prices: PriceTable;
  readonly timeouts: Timeouts;
  readonly retries: Retries;
  readonly cassettes: CassetteSettings | undefined;
  readonly logPrompts: boolean;
}

export interface CassetteSettings {
  readonly directory: string;
  /** `record`: record every answer. `replay`: send nothing. `auto`: send and record what is not recorded. */
  readonly mode: (typeof cassetteModes)[number];
}
const cassetteModes = ["record", "replay", "auto"] as const;

export interface Timeouts {
  readonly connectMs: number;
  /** From the request to the first byte of the answer's body. */
  readonly firstByteMs: number;
  /** Between two bytes of an answer that the agent is ready to read. */
  readonly idleMs: number;
  /** For a model request with all its tries. */
  readonly totalMs: number;
}

export interface Retries {
  readonly tries: number;
  /** The wait before the second try. It doubles up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** Upper limit for a Retry-After. */
  readonly maxRetryAfterMs: number;
}

const defaultTimeouts: Timeouts = {
  connectMs: 10_000,
  firstByteMs: 120_000,
  idleMs: 60_000,
  totalMs: 1_800_000,
};
const defaultRetries: Retries = { tries: 4, baseMs: 500, maxMs: 20_000, maxRetryAfterMs: 60_000 };
const defaultModel = "anthropic/claude-sonnet-5-5";

/**
 * Returns all settings, or fails with one error that lists every mistake. An empty variable counts as unset. `scripted`
 * is the address of a scripted model.
 */
export function readGatewaySettings(
  environment: Readonly<Record<string, string | undefined>>,
  options: { readonly scripted?: ScriptedAddress } = {},
): GatewaySettings {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value));
  const mistakes: string[] = [];
  const collect = <T>(read: () => T, otherwise: T): T => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SlipwayError)) throw error;
      mistakes.push(error.message);
      return otherwise;
    }
  };
  const settings = {
    models: readModels(given, collect),
    endpoints: readEndpoints(given, options.scripted, collect),
    prices: collect(() => readPrices(given["SLIPWAY_PRICES"]), new Map()),
    timeouts: defaultTimeouts,
    retries: defaultRetries,
    cassettes: collect(() => readCassettes(given), undefined),
    logPrompts: given["SLIPWAY_LOG_PROMPTS"] === "1",
  };
  if (mistakes.length > 0) throw settingsError(mistakes);
  return settings;
}

/** `SLIPWAY_MODEL_BUILD` for `build`, `SLIPWAY_MODEL_FIX_1` for `fix-1`. */
export function modelVariable(role: ModelRole): string {
  return `${rolePrefix}${role.toUpperCase().replace("-", "_")}`;
}

const rolePrefix = "SLIPWAY_MODEL_";

const modelName = z
  .string()
  .max(256)
  .regex(/^[a-z][a-z0-9-]*\/\S+$/);

function readModels(given: Given, collect: Collect): Record<ModelRole, string> {
  const read = (variable: string, otherwise: string) =>
    collect(() => {
      const value = given[variable] ?? otherwise;
      if (modelName.safeParse(value).success) return value;
      throw mistake(`${variable}: "${value}" is not a model such as ${defaultModel}.`);
    }, otherwise);
  for (const variable of Object.keys(given)) collect(() => checkRole(variable), undefined);
  const everywhere = read("SLIPWAY_MODEL", defaultModel);
  return Object.fromEntries(modelRoles.map((role) => [role, read(modelVariable(role), everywhere)])) as Record<
    ModelRole,
    string
  >;
}

function checkRole(variable: string): undefined {
  const known = modelRoles.map(modelVariable);
  if (!variable.startsWith(rolePrefix) || known.includes(variable)) return;
  const roles = known.map((name) => name.slice(rolePrefix.length)).join(", ");
  throw mistake(`${variable}: there is no such role; there are ${roles}.`);
}

function readCassettes(given: Given): CassetteSettings | undefined {
  const directory = given["SLIPWAY_CASSETTES"];
  const mode = given["SLIPWAY_CASSETTE_MODE"];
  if (directory === undefined) {
    if (mode === undefined) return undefined;
    throw mistake("SLIPWAY_CASSETTE_MODE is set and SLIPWAY_CASSETTES, their directory, is not.");
  }
  const known = cassetteModes.find((name) => name === (mode ?? "auto"));
  if (known === undefined) throw mistake(`SLIPWAY_CASSETTE_MODE: "${mode}" is not record, replay or auto.`);
  return { directory, mode: known };
}
