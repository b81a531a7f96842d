import { once } from "node:events";
import { Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as SecureAgent } from "node:https";
import { runChannel } from "@slipway/contract";
import { parseJson } from "../system/text.ts";

export interface Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
}

export interface Answer {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** Undefined if it is not JSON. */
  readonly body: unknown;
}

/** Carries one request to the host and returns the answer. */
export interface Transport {
  /** Fails with the connection's error when there is no answer. */
  call(request: Request, signal: AbortSignal): Promise<Answer>;
  close(): void;
}

export type TransportAddress = { readonly token: string } & (
  | { readonly socketPath: string }
  /** `https://host:port`, optionally with a path before `/run/`. */
  | { readonly url: string }
);

/** The host answers a poll within a heartbeat. Whatever takes longer was lost. */
const answerMs = runChannel.heartbeatMs + 15_000;
const maxAnswerBytes = 4 * 1024 * 1024;

export function createTransport(address: TransportAddress): Transport {
  const base = new URL("url" in address ? address.url : "http://run.internal");
  const isSecure = base.protocol === "https:";
  const agent = isSecure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const sendRequest = isSecure ? requestHttps : requestHttp;
  const connection = "socketPath" in address ? { socketPath: address.socketPath, agent } : { agent };
  return {
    async call({ method, path, body = "" }, signal) {
      const url = new URL(base.pathname.replace(/\/$/, "") + path, base);
      const headers = {
        authorization: `Bearer ${address.token}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
      const request = sendRequest(url, { ...connection, method, headers, signal: limit });
      // Reading the answer reports an abort. The request has nobody left to tell.
      request.on("error", () => {});
      request.end(body);
      const [response] = (await once(request, "response")) as [IncomingMessage];
      return readAnswer(response);
    },
    close: () => agent.destroy(),
  };
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new Error("the host's answer is too long");
    chunks.push(chunk);
  }
  const retryAfter = Number(response.headers["retry-after"]);
  return {
    status: response.statusCode ?? 0,
    retryAfterMs: retryAfter > 0 ? retryAfter * 1000 : undefined,
    body: parseJson(Buffer.concat(chunks).toString()),
  };
}
