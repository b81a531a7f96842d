import type { ServerResponse } from "node:http";
import type { EgressRefusal } from "@slipway/contract";
import type { ExchangeFailure } from "../../../../relay/exchange.ts";
import type { Target } from "./decide.ts";
import type { DialFailure } from "./dial.ts";
import type { Reached } from "./gate.ts";
import { type SocksReply, socksReply } from "./socks.ts";

export interface Answer {
  readonly status: number;
  readonly sentence: string;
  /** Parameters of RFC 9209's Proxy-Status: tells the proxy's answers from the origin's. */
  readonly proxyStatus?: string;
}

const refusals: Record<EgressRefusal, (target: Target) => string> = {
  not_allowed: ({ host, port }) => `The sandbox's network policy does not allow ${host}:${port}.`,
  private_address: ({ host, port }) =>
    `${host}:${port} is a private address that no range of the sandbox's network policy allows.`,
  port: ({ host, port }) => `The sandbox's network policy does not allow port ${port} of ${host}.`,
  unresolved: ({ host }) => `The host ${host} has no address.`,
  malformed: () => "The request names no valid host and port.",
};

const dialFailures: Record<DialFailure, { status: number; sentence: string; reply: SocksReply }> = {
  refused: { status: 502, sentence: "The host refused the connection.", reply: socksReply.connectionRefused },
  unreachable: { status: 502, sentence: "The host is unreachable.", reply: socksReply.hostUnreachable },
  timeout: { status: 504, sentence: "The host did not answer in time.", reply: socksReply.timedOut },
  tls: {
    status: 502,
    sentence: "The host's TLS certificate or protocol is not acceptable.",
    reply: socksReply.generalFailure,
  },
};

const exchangeFailures: Record<ExchangeFailure, Answer> = {
  upstream_failed: { status: 502, sentence: "The host ended the connection without a valid answer." },
  upstream_timeout: { status: 504, sentence: "The host did not answer in time." },
  body_too_large: { status: 413, sentence: "The request's body exceeds the egress's limit." },
};

type Unreached = Exclude<Reached, { outcome: "open" }>;

export function answerTo(unreached: Unreached, target: Target): Answer {
  if (unreached.outcome === "failed") return dialFailures[unreached.failure];
  if (unreached.outcome === "busy") return { status: 503, sentence: "The sandbox has too many open connections." };
  return {
    status: 403,
    sentence: refusals[unreached.rule](target),
    proxyStatus: `slipway; error=http_request_denied; details="${unreached.rule}"`,
  };
}

export function answerToFailure(failure: ExchangeFailure): Answer {
  return exchangeFailures[failure];
}

export function socksReplyTo(unreached: Unreached): SocksReply {
  if (unreached.outcome === "failed") return dialFailures[unreached.failure].reply;
  return unreached.outcome === "refused" ? socksReply.notAllowed : socksReply.generalFailure;
}

export function sendAnswer(response: ServerResponse, { status, sentence, proxyStatus }: Answer): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(sentence) + 1,
    // Part of the request may be unread.
    Connection: "close",
    ...(proxyStatus === undefined ? {} : { "Proxy-Status": proxyStatus }),
  });
  response.end(`${sentence}\n`);
}
