import { type ModelRole, modelRoles, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import type { CassetteSettings } from "./cassettes/cassettes.ts";
import type { DialectName } from "./dialects/dialect.ts";
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

/** Where a provider's models are asked. */
export interface Endpoint {
  readonly provider: string;
  /** Up to and with `/v1`: `/messages`, `/chat/completions` or `/responses` is added. */
  readonly baseUrl: string;
  /** Dialled instead of the address in `baseUrl`. */
  readonly socketPath?: string;
  /** What it speaks. The first one is used for agents that speak none of them. */
  readonly dialects: readonly [DialectName, ...DialectName[]];
  readonly key: string | undefined;
  /** The variable that holds the key; undefined where none is needed. */
  readonly keyVariable: string | undefined;
}

export interface Timeouts {
  readonly connectMs: number;
  /** From the request to the first byte of the answer's body. */
  readonly firstByteMs: number;
  /** Between two bytes of an answer that the agent is ready to take. */
  readonly idleMs: number;
  /** Of a model request with all its tries. */
  readonly totalMs: number;
}

export interface Retries {
  readonly tries: number;
  /** The wait before the second try; it doubles from then on, up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** A Retry-After that asks for more is cut to this. */
  readonly maxRetryAfterMs: number;
}

export type ScriptedAddress = { readonly path: string } | { readonly host: string; readonly port: number };

export const defaultTimeouts: Timeouts = {
  connectMs: 10_000,
  firstByteMs: 120_000,
  idleMs: 60_000,
  totalMs: 1_800_000,
};
export const defaultRetries: Retries = { tries: 4, baseMs: 500, maxMs: 20_000, maxRetryAfterMs: 60_000 };
const defaultModel = "anthropic/claude-sonnet-4-6";

/** All settings, or one error that names every mistake. An empty variable counts as not set. `scripted` is where a scripted model listens. */
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

type Given = Readonly<Record<string, string | undefined>>;
type Collect = <T>(read: () => T, otherwise: T) => T;

/** `SLIPWAY_MODEL_BUILD` for `build`, `SLIPWAY_MODEL_FIX_1` for `fix-1`. */
export function modelVariable(role: ModelRole): string {
  return `SLIPWAY_MODEL_${role.toUpperCase().replace("-", "_")}`;
}

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
  const everywhere = read("SLIPWAY_MODEL", defaultModel);
  return Object.fromEntries(modelRoles.map((role) => [role, read(modelVariable(role), everywhere)])) as Record<
    ModelRole,
    string
  >;
}

function readEndpoints(given: Given, scripted: ScriptedAddress | undefined, collect: Collect): Endpoint[] {
  const anthropicUrl = given["ANTHROPIC_BASE_URL"] ?? "https://api.anthropic.com";
  const openaiUrl = given["OPENAI_BASE_URL"] ?? "https://api.openai.com/v1";
  const endpoints: Endpoint[] = [
    {
      provider: "anthropic",
      // By convention this variable has no /v1.
      baseUrl: collect(() => `${readUrl("ANTHROPIC_BASE_URL", anthropicUrl).replace(/\/v1$/, "")}/v1`, ""),
      dialects: ["anthropic"],
      key: given["ANTHROPIC_API_KEY"],
      keyVariable: "ANTHROPIC_API_KEY",
    },
    {
      provider: "openai",
      baseUrl: collect(() => readUrl("OPENAI_BASE_URL", openaiUrl), ""),
      dialects: ["responses", "chat"],
      key: given["OPENAI_API_KEY"],
      keyVariable: "OPENAI_API_KEY",
    },
  ];
  if (scripted !== undefined) endpoints.push(scriptedEndpoint(scripted));
  const taken = new Set(["anthropic", "openai", "scripted"]);
  for (const part of given["SLIPWAY_ENDPOINTS"]?.split(",") ?? []) {
    const endpoint = collect(() => readEndpoint(part.trim(), given, taken), undefined);
    if (endpoint !== undefined) endpoints.push(endpoint);
  }
  return endpoints;
}

function readEndpoint(text: string, given: Given, taken: Set<string>): Endpoint {
  const match = /^([a-z][a-z0-9-]*)=(.+)$/.exec(text);
  const [, provider, url] = match ?? [];
  if (provider === undefined || url === undefined) {
    throw mistake(`SLIPWAY_ENDPOINTS: "${text}" is not name=https://host/v1.`);
  }
  if (taken.has(provider)) throw mistake(`SLIPWAY_ENDPOINTS: there is a provider ${provider} already.`);
  taken.add(provider);
  const key = given[`SLIPWAY_KEY_${provider.toUpperCase().replaceAll("-", "_")}`];
  const baseUrl = readUrl("SLIPWAY_ENDPOINTS", url);
  return { provider, baseUrl, dialects: ["chat"], key, keyVariable: undefined };
}

function scriptedEndpoint(address: ScriptedAddress): Endpoint {
  const common = {
    provider: "scripted",
    dialects: ["anthropic", "chat", "responses"],
    key: undefined,
    keyVariable: undefined,
  } as const;
  if ("path" in address) return { ...common, baseUrl: "http://scripted.internal/v1", socketPath: address.path };
  return { ...common, baseUrl: `http://${address.host}:${address.port}/v1` };
}

function readUrl(variable: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const fits = url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  // A key in the address would end up in messages and logs.
  if (!fits || url.username !== "" || url.password !== "") {
    throw mistake(`${variable}: this is not a plain http or https address.`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

const cassetteModes = ["record", "replay", "auto"] as const;

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

function mistake(message: string): SlipwayError {
  return new SlipwayError("invalid_settings", message);
}

function settingsError(mistakes: readonly string[]): SlipwayError {
  const count = mistakes.length === 1 ? "One setting is wrong" : `${mistakes.length} settings are wrong`;
  return mistake([`${count}:`, ...mistakes.map((text) => `- ${text}`)].join("\n"));
}
