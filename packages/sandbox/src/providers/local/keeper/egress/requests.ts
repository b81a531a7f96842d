import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { InjectedSecret } from "@slipway/contract";
import {
  type ExchangeLimits,
  exchange,
  exchangeUpgrade,
  isForwardable,
  responseOn,
  type Upstream,
} from "../../../../relay/exchange.ts";
import { endToEnd, type HeaderList, without } from "../../../../relay/headers.ts";
import { formatAddress } from "./address.ts";
import { type Answer, answerTo, answerToFailure, sendAnswer } from "./answers.ts";
import type { Target } from "./decide.ts";
import { DialError, secure } from "./dial.ts";
import type { Gate } from "./gate.ts";
import { parseAuthority, parseHost } from "./host.ts";
import type { Scheme } from "./rules.ts";

/** What a connection for a single host carries. */
export interface Opened {
  readonly target: Target;
  readonly scheme: Scheme;
}

export interface RequestOptions {
  readonly gate: Gate;
  readonly limits: ExchangeLimits & { readonly connectMs: number };
  /** Trusted authorities for hosts with injected secrets; Node's own when undefined. */
  readonly upstreamCa: string | readonly string[] | undefined;
  readonly openedFor: (connection: Duplex) => Opened | undefined;
}

interface Addressed extends Opened {
  readonly path: string;
}

export function createRequestHandlers(options: RequestOptions) {
  const { limits } = options;
  return {
    onRequest: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const abort = new AbortController();
      response.once("close", () => abort.abort());
      const upstream = await prepare(request, options, abort.signal);
      if ("status" in upstream) return sendAnswer(response, upstream);
      if (abort.signal.aborted) return void upstream.connection.destroy();
      exchange(request, response, upstream, limits, (failure) => sendAnswer(response, answerToFailure(failure)));
    },
    onUpgrade: async (request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> => {
      const abort = new AbortController();
      client.on("error", () => client.destroy());
      client.once("close", () => abort.abort());
      const answer = (what: Answer) => sendAnswer(responseOn(request, client), what);
      const upstream = await prepare(request, options, abort.signal);
      if ("status" in upstream) return answer(upstream);
      if (abort.signal.aborted) return void upstream.connection.destroy();
      exchangeUpgrade(request, client, head, upstream, limits, (failure) => answer(answerToFailure(failure)));
    },
  };
}

/** Decides, connects and rewrites the request's head; or returns why not. */
async function prepare(
  request: IncomingMessage,
  options: RequestOptions,
  signal: AbortSignal,
): Promise<Upstream | Answer> {
  const { gate, limits, upstreamCa } = options;
  const addressed = addressOf(request, options.openedFor(request.socket));
  if (addressed === undefined) return { status: 400, sentence: "The egress accepts http:// requests and CONNECT." };
  const { target, scheme, path } = addressed;
  const secrets = gate.secretsFor(target, scheme);
  // The policy has changed since the connection was terminated for this host.
  if (scheme === "https" && secrets.length === 0) return answerTo({ outcome: "refused", rule: "not_allowed" }, target);
  const unfit = unfitness(request, secrets, limits.bodyBytes);
  if (unfit) return unfit;
  const reached = await gate.reach(target, signal);
  if (reached.outcome !== "open") return answerTo(reached, target);
  try {
    const host = parseHost(target.host);
    const name = host?.kind === "name" ? host.name : target.host;
    const connection =
      scheme === "https"
        ? await secure(reached.connection, name, upstreamCa as string | string[] | undefined, limits.connectMs, signal)
        : reached.connection;
    return { connection, path, headers: headersFor(request, addressed, secrets) };
  } catch (error) {
    reached.connection.destroy();
    if (error instanceof DialError) return answerTo({ outcome: "failed", failure: error.failure }, target);
    throw error;
  }
}

function unfitness(
  request: IncomingMessage,
  secrets: readonly InjectedSecret[],
  bodyBytes: number,
): Answer | undefined {
  if (!isForwardable(request))
    return { status: 501, sentence: "The egress supports only the chunked transfer encoding." };
  if (Number(request.headers["content-length"] ?? 0) > bodyBytes) return answerToFailure("body_too_large");
  // A server answers TRACE with its request, including the secret.
  if (request.method === "TRACE" && secrets.length > 0)
    return { status: 405, sentence: "The egress does not forward TRACE to this host." };
  return undefined;
}

/** On a connection for a single host, requests name a path; on others, a whole address. */
function addressOf({ url = "" }: IncomingMessage, opened: Opened | undefined): Addressed | undefined {
  if (opened) return url.startsWith("/") || url === "*" ? { ...opened, path: url } : undefined;
  const match = /^http:\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url);
  if (match?.[1] === undefined) return undefined;
  const rest = match[2] ?? "/";
  return { target: targetOf(match[1], 80), scheme: "http", path: rest.startsWith("/") ? rest : `/${rest}` };
}

/** An invalid authority becomes the host, which is then refused as malformed. */
export function targetOf(authority: string, defaultPort?: number): Target {
  return parseAuthority(authority, defaultPort) ?? { host: authority, port: 0 };
}

/**
 * Secrets replace the client's headers of the same names. No answer or error of the egress holds them, but a host that
 * echoes request headers shows them to the sandbox: a policy must name only hosts that do not.
 */
function headersFor(
  request: IncomingMessage,
  { target, scheme }: Opened,
  secrets: readonly InjectedSecret[],
): HeaderList {
  const kept = without(endToEnd(request.rawHeaders), ["host", ...secrets.map(({ header }) => header)]);
  const injected = new Map(secrets.map(({ header, value }) => [header.toLowerCase(), [header, value] as const]));
  return [["Host", hostHeader(target, scheme === "https" ? 443 : 80)], ...kept, ...injected.values()];
}

function hostHeader({ host, port }: Target, defaultPort: number): string {
  const parsed = parseHost(host);
  const name = parsed?.kind === "name" ? parsed.name : parsed ? formatAddress(parsed.address) : host;
  const bracketed = name.includes(":") ? `[${name}]` : name;
  return port === defaultPort ? bracketed : `${bracketed}:${port}`;
}
