import { type Environment, readEnvironment } from "@slipway/contract";
import { z } from "zod";
import type { DialectName } from "../dialects/dialect.ts";

/** Where to reach a provider's models. */
export interface Endpoint {
  readonly provider: string;
  /** Includes `/v1`. `/messages`, `/chat/completions` or `/responses` is appended. */
  readonly baseUrl: string;
  /** Dialled instead of the address in `baseUrl`. */
  readonly socketPath?: string;
  /** The dialects it speaks. Agents that speak none of them get the first one, translated. */
  readonly dialects: readonly [DialectName, ...DialectName[]];
  readonly key: string | undefined;
  /** The variable that holds the key. Undefined if it has none. */
  readonly keyVariable: string | undefined;
  /** May work without a key: only its answer tells. */
  readonly keyOptional?: boolean;
}

export type ScriptedAddress = { readonly path: string } | { readonly host: string; readonly port: number };

const plainUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  // A key in the address would end up in messages and logs.
  const isPlain = url !== null && [url.search, url.hash, url.username, url.password].every((part) => part === "");
  if (isPlain && /^https?:$/.test(url.protocol)) return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
  context.addIssue({ code: "custom", message: "this is not a plain http or https address" });
  return z.NEVER;
});

/** Keys that were read from a file often end with a new line. */
const key = z
  .string()
  .trim()
  .regex(/^[\x21-\x7e]+$/, "this is not a key: it has characters that no key has")
  .optional();

const others = z.string().transform((text, context) => {
  const taken = new Set(["anthropic", "openai", "scripted"]);
  return text.split(",").map((part) => {
    const [, provider, address] = /^([a-z][a-z0-9-]*)=(.+)$/.exec(part.trim()) ?? [];
    const url = plainUrl.safeParse(address);
    let mistake = url.error?.issues[0]?.message;
    if (provider === undefined) mistake = `"${part.trim()}" is not name=https://host/v1`;
    else if (taken.has(provider)) mistake = `there is a provider ${provider} already`;
    else taken.add(provider);
    if (mistake === undefined && provider !== undefined && url.data !== undefined)
      return { provider, baseUrl: url.data };
    context.addIssue({ code: "custom", message: `${mistake}` });
    return z.NEVER;
  });
});

export const endpointVariables = {
  ANTHROPIC_BASE_URL: plainUrl.default("https://api.anthropic.com"),
  OPENAI_BASE_URL: plainUrl.default("https://api.openai.com/v1"),
  ANTHROPIC_API_KEY: key,
  OPENAI_API_KEY: key,
  SLIPWAY_ENDPOINTS: others.default([]),
};

type EndpointSettings = z.output<z.ZodObject<typeof endpointVariables>>;

export function readEndpoints(
  settings: EndpointSettings,
  environment: Environment,
  scripted: ScriptedAddress | undefined,
): { readonly endpoints: readonly Endpoint[]; readonly mistakes: readonly string[] } {
  const named = settings.SLIPWAY_ENDPOINTS.map(({ provider, baseUrl }) => {
    const keyVariable = `SLIPWAY_KEY_${provider.toUpperCase().replaceAll("-", "_")}`;
    return { provider, baseUrl, dialects: ["chat"], keyVariable, keyOptional: true } as const;
  });
  const keySchema = z.object(Object.fromEntries(named.map(({ keyVariable }) => [keyVariable, key])));
  const { settings: keys, mistakes } = readEnvironment(keySchema, environment);
  const endpoints: Endpoint[] = [
    {
      provider: "anthropic",
      // By convention this variable has no /v1.
      baseUrl: `${settings.ANTHROPIC_BASE_URL.replace(/\/v1$/, "")}/v1`,
      dialects: ["anthropic"],
      key: settings.ANTHROPIC_API_KEY,
      keyVariable: "ANTHROPIC_API_KEY",
    },
    {
      provider: "openai",
      baseUrl: settings.OPENAI_BASE_URL,
      dialects: ["responses", "chat"],
      key: settings.OPENAI_API_KEY,
      keyVariable: "OPENAI_API_KEY",
    },
    ...(scripted === undefined ? [] : [scriptedEndpoint(scripted)]),
    ...named.map((endpoint) => ({ ...endpoint, key: keys[endpoint.keyVariable] })),
  ];
  return { endpoints, mistakes };
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
