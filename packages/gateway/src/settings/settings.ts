import {
  type ComputePrices,
  type Environment,
  hasCode,
  type ModelRole,
  modelRoles,
  readEnvironment,
  settingsError,
} from "@slipway/contract";
import { z } from "zod";
import { type Endpoint, endpointVariables, readEndpoints, type ScriptedAddress } from "./endpoints.ts";
import { type Prices, type PriceTable, readPrices } from "./prices.ts";

export interface GatewaySettings {
  /** `provider/model` for each role. */
  readonly models: Readonly<Record<ModelRole, string>>;
  readonly endpoints: readonly Endpoint[];
  readonly prices: PriceTable;
  /** Of sandboxes, which are no model's business: the same file has them. */
  readonly computePrices: ComputePrices;
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

const rolePrefix = "SLIPWAY_MODEL_";

/** `SLIPWAY_MODEL_BUILD` for `build`, `SLIPWAY_MODEL_FIX_1` for `fix-1`. */
export function modelVariable(role: ModelRole): string {
  return `${rolePrefix}${role.toUpperCase().replace("-", "_")}`;
}

const modelName = z.string().refine((name) => name.length <= 256 && /^[a-z][a-z0-9-]*\/\S+$/.test(name), {
  error: ({ input }) => `"${input}" is not a model such as ${defaultModel}`,
});
const roleSchema = z.object(Object.fromEntries(modelRoles.map((role) => [modelVariable(role), modelName.optional()])));

const priceFile = z.string().transform((path, context): Prices => {
  try {
    return readPrices(path);
  } catch (error) {
    if (!hasCode(error, "invalid_settings")) throw error;
    context.addIssue({ code: "custom", message: error.message });
    return z.NEVER;
  }
});

const environmentSchema = z.object({
  ...endpointVariables,
  SLIPWAY_MODEL: modelName.default(defaultModel),
  SLIPWAY_PRICES: priceFile.optional(),
  SLIPWAY_CASSETTES: z.string().optional(),
  SLIPWAY_CASSETTE_MODE: z
    .enum(cassetteModes, { error: ({ input }) => `"${input}" is not record, replay or auto` })
    .optional(),
  SLIPWAY_LOG_PROMPTS: z.string().optional(),
});

/** Returns all settings, or fails with one error that lists every mistake. `scripted` is the address of a scripted model. */
export function readGatewaySettings(
  environment: Environment,
  options: { readonly scripted?: ScriptedAddress } = {},
): GatewaySettings {
  const { settings, given, mistakes } = readEnvironment(environmentSchema, environment);
  const roles = readEnvironment(roleSchema, environment);
  const endpoints = readEndpoints(settings, environment, options.scripted);
  const { SLIPWAY_CASSETTES: directory, SLIPWAY_CASSETTE_MODE: mode } = settings;
  const all = [...mistakes, ...roles.mistakes, ...unknownRoles(given), ...endpoints.mistakes];
  if (mode !== undefined && directory === undefined) {
    all.push("SLIPWAY_CASSETTE_MODE is set and SLIPWAY_CASSETTES, their directory, is not.");
  }
  if (all.length > 0) throw settingsError(all);
  const prices = settings.SLIPWAY_PRICES ?? readPrices();
  const modelOf = (role: ModelRole) => roles.settings[modelVariable(role)] ?? settings.SLIPWAY_MODEL;
  return {
    models: Object.fromEntries(modelRoles.map((role) => [role, modelOf(role)])) as Record<ModelRole, string>,
    endpoints: endpoints.endpoints,
    prices: prices.models,
    computePrices: prices.compute,
    timeouts: defaultTimeouts,
    retries: defaultRetries,
    cassettes: directory === undefined ? undefined : { directory, mode: mode ?? "auto" },
    logPrompts: settings.SLIPWAY_LOG_PROMPTS === "1",
  };
}

function unknownRoles(given: Environment): string[] {
  const known = Object.keys(roleSchema.shape);
  const roles = known.map((name) => name.slice(rolePrefix.length)).join(", ");
  return Object.keys(given)
    .filter((name) => name.startsWith(rolePrefix) && !known.includes(name))
    .map((name) => `${name}: there is no such role; there are ${roles}.`);
}
