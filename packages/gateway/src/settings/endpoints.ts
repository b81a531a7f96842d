import type { DialectName } from "../dialects/dialect.ts";
import { type Collect, type Given, mistake } from "./mistakes.ts";

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

export function readEndpoints(given: Given, scripted: ScriptedAddress | undefined, collect: Collect): Endpoint[] {
  const anthropicUrl = given["ANTHROPIC_BASE_URL"] ?? "https://api.anthropic.com";
  const openaiUrl = given["OPENAI_BASE_URL"] ?? "https://api.openai.com/v1";
  const endpoints: Endpoint[] = [
    {
      provider: "anthropic",
      // By convention this variable has no /v1.
      baseUrl: collect(() => `${readUrl("ANTHROPIC_BASE_URL", anthropicUrl).replace(/\/v1$/, "")}/v1`, ""),
      dialects: ["anthropic"],
      key: readKey(given, "ANTHROPIC_API_KEY"),
      keyVariable: "ANTHROPIC_API_KEY",
    },
    {
      provider: "openai",
      baseUrl: collect(() => readUrl("OPENAI_BASE_URL", openaiUrl), ""),
      dialects: ["responses", "chat"],
      key: readKey(given, "OPENAI_API_KEY"),
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
  const keyVariable = `SLIPWAY_KEY_${provider.toUpperCase().replaceAll("-", "_")}`;
  const key = readKey(given, keyVariable);
  const baseUrl = readUrl("SLIPWAY_ENDPOINTS", url);
  return { provider, baseUrl, dialects: ["chat"], key, keyVariable, keyOptional: true };
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

/** Keys read from a file often end with a newline. */
function readKey(given: Given, variable: string): string | undefined {
  const key = given[variable]?.trim();
  if (key === undefined || /^[\x21-\x7e]+$/.test(key)) return key;
  throw mistake(`${variable}: this is not a key: it has characters that no key has.`);
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
