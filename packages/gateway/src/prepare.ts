import type { IncomingHttpHeaders } from "node:http";
import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { estimateInputTokens } from "./budget.ts";
import { asObject } from "./content.ts";
import type { ModelRequest } from "./conversation.ts";
import type { Dialect, DialectName } from "./dialects/dialect.ts";
import { dialects } from "./dialects/index.ts";
import type { Endpoint } from "./endpoints.ts";
import { guardBody, limitFields } from "./guard.ts";
import { chooseRoute, type Route } from "./routes.ts";
import type { GatewaySettings } from "./settings.ts";
import type { UpstreamRequest } from "./upstream.ts";

/** An agent's request, ready to be sent to the endpoint of its model. */
export interface PreparedRequest {
  readonly route: Route;
  readonly streamed: boolean;
  readonly inputTokens: number;
  readonly maxOutputTokens: number | undefined;
  readonly hiddenTokens: number;
  readonly upstream: UpstreamRequest;
  /** What the endpoint speaks. */
  readonly dialect: Dialect;
  /** What the agent asked, where the endpoint speaks another dialect; else its bytes pass unchanged. */
  readonly translated: ModelRequest | undefined;
}

const tokens = z.int().min(1).max(10_000_000).nullish();

/** What the gateway itself must know of a body in any dialect; the rest is between the agent and the endpoint. */
const bodySchema = z.looseObject({
  model: z.string().min(1).max(256),
  stream: z.boolean().nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  max_output_tokens: tokens,
});
type Body = z.output<typeof bodySchema>;

export function prepare(
  settings: GatewaySettings,
  routes: readonly Route[],
  agent: { readonly dialect: Dialect; readonly body: Buffer; readonly headers: IncomingHttpHeaders },
): PreparedRequest {
  const body = parseBody(agent.body);
  const route = chooseRoute(settings, routes, body.model);
  guardBody(agent.dialect.name, body);
  const { endpoint } = route;
  const same = endpoint.dialects.includes(agent.dialect.name);
  const dialect = same ? agent.dialect : dialects[endpoint.dialects[0]];
  const asked = same ? undefined : { ...agent.dialect.readRequest(body), model: route.model };
  const sent = asked === undefined ? passedBody(agent.dialect.name, body, route.model) : dialect.writeRequest(asked);
  const text = stringify(sent);
  return {
    route,
    streamed: body.stream === true,
    inputTokens: estimateInputTokens(sent, text),
    maxOutputTokens: outputLimit(agent.dialect.name, body),
    hiddenTokens: hiddenTokens(body),
    upstream: {
      endpoint,
      dialect: dialect.name,
      path: dialect.path.replace(/^\/v1/, ""),
      headers: upstreamHeaders(endpoint, dialect.name, same ? agent.headers : {}),
      body: text,
    },
    dialect,
    translated: asked,
  };
}

/** Where a request lets a model think and does not say how much. */
const usualThinkingTokens = 8192;

function hiddenTokens(body: Body): number {
  const { type, budget_tokens: budget } = asObject(body["thinking"]);
  if (typeof budget === "number" && budget > 0) return Math.ceil(budget);
  const effort = asObject(body["reasoning"])["effort"] ?? body["reasoning_effort"] ?? "none";
  return (type !== undefined && type !== "disabled") || effort !== "none" ? usualThinkingTokens : 0;
}

/** Of two limits, the endpoint may read either. */
function outputLimit(dialect: DialectName, body: Body): number | undefined {
  const limits = limitFields[dialect].flatMap((field) => body[field] ?? []);
  return limits.length === 0 ? undefined : Math.max(...limits);
}

export function parseBody(bytes: Buffer): Body {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new SlipwayError("invalid_request", `the body is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = bodySchema.safeParse(json);
  // As it came, so that the order of its fields stays.
  if (parsed.success) return json as Body;
  const [issue] = parsed.error.issues;
  throw new SlipwayError("invalid_request", `${issue?.path.join(".") || "the body"}: ${issue?.message}`);
}

function stringify(body: Record<string, unknown>): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    // What is nested too deeply to be written can still be read.
    if (!(error instanceof RangeError)) throw error;
    throw new SlipwayError("invalid_request", "the body is nested too deeply", { cause: error });
  }
}

function passedBody(dialect: DialectName, body: Body, model: string): Record<string, unknown> {
  const named = { ...body, model };
  if (dialect !== "chat" || body.stream !== true) return named;
  // Without it a stream does not tell what it cost.
  return { ...named, stream_options: { ...asObject(body["stream_options"]), include_usage: true } };
}

/** The agent's own authorization stays here. */
function upstreamHeaders(endpoint: Endpoint, dialect: DialectName, agent: IncomingHttpHeaders): Record<string, string> {
  const { key } = endpoint;
  if (dialect !== "anthropic") return key === undefined ? {} : { authorization: `Bearer ${key}` };
  const beta = agent["anthropic-beta"];
  return {
    ...(key === undefined ? {} : { "x-api-key": key }),
    // The one whose answers can be metered.
    "anthropic-version": "2023-06-01",
    ...(beta === undefined ? {} : { "anthropic-beta": allowedBetas(String(beta)) }),
  };
}

/** Without those that change the price. */
function allowedBetas(betas: string): string {
  const names = betas.split(",").map((name) => name.trim());
  return names.filter((name) => !/^(context-1m|fast-mode)/.test(name)).join(",");
}
