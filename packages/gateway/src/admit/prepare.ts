import type { IncomingHttpHeaders } from "node:http";
import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { asObject, type Json } from "../dialects/content.ts";
import type { ModelRequest } from "../dialects/conversation.ts";
import type { AgentDialect, Dialect, DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/index.ts";
import { estimateInputTokens, type InputTokens } from "../pay/request-cost.ts";
import type { UpstreamRequest } from "../send/upstream.ts";
import type { Endpoint } from "../settings/endpoints.ts";
import type { ModelPrice } from "../settings/prices.ts";
import { chooseRoute, type Route } from "../settings/routes.ts";
import type { GatewaySettings } from "../settings/settings.ts";
import { guardBody, limitFields } from "./guard.ts";

/** An agent's request, ready to send to its model's endpoint. */
export interface PreparedRequest extends InputTokens {
  readonly route: Route;
  readonly streamed: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly hiddenTokens: number;
  readonly upstream: UpstreamRequest;
  /** The same request with a lower output limit. */
  limitOutput(tokens: number): UpstreamRequest;
  /** The dialect of the endpoint. */
  readonly dialect: Dialect;
  /** The agent's request when the endpoint speaks another dialect. Undefined when bytes pass through unchanged. */
  readonly translated: ModelRequest | undefined;
}

const tokens = z.int().min(1).max(10_000_000).nullish();

/** What the gateway needs to know of a body in any dialect. The rest is between agent and endpoint. */
const bodySchema = z.object({
  model: z.string().min(1).max(256),
  stream: z.boolean().nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  max_output_tokens: tokens,
});
type Body = z.output<typeof bodySchema> & Json;

interface Agent {
  readonly dialect: AgentDialect;
  readonly body: Buffer;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
}

export function prepare(settings: GatewaySettings, routes: readonly Route[], agent: Agent): PreparedRequest {
  const body = parseBody(agent.body, agent.fields);
  const route = chooseRoute(settings, routes, body.model);
  guardBody(agent.dialect.name, body);
  const { endpoint } = route;
  const spoken = endpoint.dialects.find((name) => name === agent.dialect.name);
  const dialect = dialects[spoken ?? endpoint.dialects[0]];
  const asked = spoken ? undefined : { ...agent.dialect.readRequest(body), model: route.model };
  const sent = asked === undefined ? passedBody(dialect.name, body, route.model) : dialect.writeRequest(asked);
  const upstream = {
    endpoint,
    dialect: dialect.name,
    path: dialect.path.replace(/^\/v1/, ""),
    headers: upstreamHeaders(endpoint, dialect.name, spoken ? agent.headers : {}),
    body: encode(sent),
  };
  return {
    route,
    streamed: body.stream === true,
    ...estimateInputTokens(sent, upstream.body.length),
    maxOutputTokens: outputLimit(dialect.name, sent),
    hiddenTokens: hiddenTokens(route.price, dialect.name, sent),
    upstream,
    limitOutput: (tokens) => ({ ...upstream, body: encode({ ...sent, ...limitOf(dialect.name, sent, tokens) }) }),
    dialect,
    translated: asked,
  };
}

/** Thinking that is requested without a limit, or not ruled out, may use all of the output. */
function hiddenTokens({ hiddenThinking }: ModelPrice, dialect: DialectName, sent: Json): number {
  if (hiddenThinking === "never") return 0;
  const { type, budget_tokens: budget } = asObject(sent["thinking"]);
  if (dialect === "anthropic" && type === "enabled" && typeof budget === "number") return Math.max(0, budget);
  const efforts = ["reasoning", "output_config"].map((field) => asObject(sent[field])["effort"]);
  const words = [type, sent["reasoning_effort"], ...efforts].filter((word) => word !== undefined && word !== null);
  if (words.length === 0) return hiddenThinking === "usual" ? Number.POSITIVE_INFINITY : 0;
  return words.every((word) => word === "disabled" || word === "none") ? 0 : Number.POSITIVE_INFINITY;
}

/** With two limits, the endpoint may read either. */
function outputLimit(dialect: DialectName, sent: Json): number | undefined {
  const limits = limitFields[dialect].map((field) => sent[field]).filter((limit) => typeof limit === "number");
  return limits.length === 0 ? undefined : Math.max(...limits);
}

function limitOf(dialect: DialectName, sent: Json, tokens: number): Json {
  const [usual, ...others] = limitFields[dialect];
  const given = [usual, ...others].filter((field) => typeof sent[field] === "number");
  const limits = Object.fromEntries((given.length === 0 ? [usual] : given).map((field) => [field, tokens]));
  return dialect === "anthropic" ? { ...limits, ...lessThinking(sent, tokens) } : limits;
}

/** The minimum an endpoint accepts. The answer gets at least as much. */
const leastThinkingTokens = 1024;

/** The thinking budget must stay below the limit of the whole answer. */
function lessThinking(sent: Json, tokens: number): Json {
  const thinking = asObject(sent["thinking"]);
  const budget = thinking["budget_tokens"];
  const most = tokens - leastThinkingTokens;
  if (thinking["type"] !== "enabled" || typeof budget !== "number" || budget <= most) return {};
  if (most < leastThinkingTokens) return { thinking: { type: "disabled" } };
  return { thinking: { ...thinking, budget_tokens: most } };
}

/** `fields` come from the request's path. */
export function parseBody(bytes: Buffer, fields: Readonly<Record<string, unknown>>): Body {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new SlipwayError("invalid_request", `the body is not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof json === "object" && json !== null) Object.assign(json, fields);
  const parsed = bodySchema.safeParse(json);
  // Return the original object, to keep the order of its fields.
  if (parsed.success) return json as Body;
  const [issue] = parsed.error.issues;
  throw new SlipwayError("invalid_request", `${issue?.path.join(".") || "the body"}: ${issue?.message}`);
}

/** Serialise the parsed body: of a duplicated field, the endpoint might read a value that was not checked. */
function encode(body: Json): Buffer {
  return Buffer.from(JSON.stringify(body));
}

function passedBody(dialect: DialectName, body: Body, model: string): Record<string, unknown> {
  const named = { ...body, model };
  if (dialect !== "chat" || body.stream !== true) return named;
  // Without this option a stream does not report its usage.
  return { ...named, stream_options: { ...asObject(body["stream_options"]), include_usage: true } };
}

/** Drops the agent's own authorization. */
function upstreamHeaders(endpoint: Endpoint, dialect: DialectName, agent: IncomingHttpHeaders): Record<string, string> {
  const { key } = endpoint;
  if (dialect !== "anthropic") return key === undefined ? {} : { authorization: `Bearer ${key}` };
  const beta = agent["anthropic-beta"];
  return {
    ...(key === undefined ? {} : { "x-api-key": key }),
    // The version whose answers the gateway can meter.
    "anthropic-version": "2023-06-01",
    ...(beta === undefined ? {} : { "anthropic-beta": allowedBetas(String(beta)) }),
  };
}

/** Drops the betas that change the price. */
function allowedBetas(betas: string): string {
  const names = betas.split(",").map((name) => name.trim());
  return names.filter((name) => !/^(context-1m|fast-mode)/.test(name)).join(",");
}
