import { type ClientRequest, type IncomingMessage, ServerResponse, request as sendRequest } from "node:http";
import type { Duplex, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { endToEnd, type HeaderList, without } from "./headers.ts";
import { splice } from "./splice.ts";

/** The one request that `connection` carries. */
export interface Upstream {
  readonly connection: Duplex;
  readonly path: string;
  /** All headers, including Host; framing is added. */
  readonly headers: HeaderList;
  /** Changes the answer's headers for the client. */
  readonly mapAnswer?: (headers: HeaderList) => HeaderList;
  /** A transform for the answer's body; undefined leaves it. */
  readonly mapBody?: (headers: HeaderList) => Transform | undefined;
}

export interface ExchangeLimits {
  readonly idleMs: number;
  readonly headerBytes: number;
  readonly bodyBytes: number;
}

export type ExchangeFailure = "upstream_failed" | "upstream_timeout" | "body_too_large";

/**
 * Sends the client's request over the connection and streams the answer back. Parses and rewrites both messages, so
 * that the two sides cannot disagree about where one ends. Calls `onFailure` before the answer has begun; later
 * failures cut the client, so that it does not take a part for the whole.
 */
export function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  upstream: Upstream,
  limits: ExchangeLimits,
  onFailure: (failure: ExchangeFailure) => void,
): void {
  const fail = (failure: ExchangeFailure) => {
    outgoing.destroy();
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) onFailure(failure);
  };
  const idle = setTimeout(() => fail("upstream_timeout"), limits.idleMs).unref();
  const touch = () => idle.refresh();
  const framing = bodyFraming(request);
  const outgoing = open(request, upstream, [...framing, ["Connection", "close"]], limits, fail);
  outgoing.on("response", (answer) => {
    answer.on("data", touch);
    void answerWith(response, answer, upstream).finally(() => outgoing.destroy());
  });
  response.once("close", () => {
    clearTimeout(idle);
    outgoing.destroy();
  });
  if (framing.length === 0) return void outgoing.end();
  request.on("data", touch);
  sendBody(request, outgoing, limits.bodyBytes, fail);
}

/** As `exchange`, for an upgrade request: splices the two connections after a 101. */
export function exchangeUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  upstream: Upstream,
  limits: ExchangeLimits,
  onFailure: (failure: ExchangeFailure) => void,
): void {
  const upgrade: HeaderList = [
    ["Connection", "Upgrade"],
    ["Upgrade", request.headers.upgrade ?? ""],
  ];
  let answered = false;
  const fail = (failure: ExchangeFailure) => {
    clearTimeout(idle);
    outgoing.destroy();
    if (answered) client.destroy();
    else onFailure(failure);
    answered = true;
  };
  const idle = setTimeout(() => fail("upstream_timeout"), limits.idleMs).unref();
  const outgoing = open(request, upstream, upgrade, limits, fail);
  const onClose = () => {
    clearTimeout(idle);
    outgoing.destroy();
  };
  outgoing.on("upgrade", (answer, connection, firstBytes) => {
    answered = true;
    clearTimeout(idle);
    // The splice takes over: the connection may have bytes to flush when the client is gone.
    client.off("close", onClose);
    const headers = mapped(upstream, endToEnd(answer.rawHeaders));
    client.write(
      `HTTP/1.1 101 Switching Protocols\r\n${[...headers, ...upgrade].map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`,
    );
    if (firstBytes.length > 0) connection.unshift(firstBytes);
    if (head.length > 0) client.unshift(head);
    splice(client, connection, limits.idleMs);
  });
  outgoing.on("response", (answer) => {
    answered = true;
    clearTimeout(idle);
    const response = responseOn(request, client);
    void answerWith(response, answer, upstream).finally(() => outgoing.destroy());
  });
  client.once("close", onClose);
  outgoing.end();
}

/** The last response on a connection that Node's server has detached. */
export function responseOn(request: IncomingMessage, connection: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // A duplex has all that Node uses of the socket here.
  response.assignSocket(connection as Parameters<ServerResponse["assignSocket"]>[0]);
  response.once("finish", () => connection.end());
  return response;
}

/** Whether rewriting the message keeps its meaning. */
export function isForwardable({ headers, httpVersion }: IncomingMessage): boolean {
  const encoding = headers["transfer-encoding"];
  return encoding === undefined || (httpVersion === "1.1" && encoding.trim().toLowerCase() === "chunked");
}

function open(
  request: IncomingMessage,
  { connection, path, headers }: Upstream,
  added: HeaderList,
  limits: ExchangeLimits,
  fail: (failure: ExchangeFailure) => void,
): ClientRequest {
  const outgoing = sendRequest({
    createConnection: () => connection,
    method: request.method ?? "GET",
    path,
    headers: [...without(headers, ["content-length", "expect"]), ...added].flat(),
    maxHeaderSize: limits.headerBytes,
    setDefaultHeaders: false,
  });
  outgoing.maxHeadersCount = 0;
  outgoing.on("error", () => fail("upstream_failed"));
  return outgoing;
}

/** Empty when there is no body; then none is sent, because its bytes could pass for another request. */
function bodyFraming({ headers, method }: IncomingMessage): HeaderList {
  if (headers["transfer-encoding"] !== undefined) return [["Transfer-Encoding", "chunked"]];
  if (headers["content-length"] !== undefined) return [["Content-Length", headers["content-length"]]];
  return method === "GET" || method === "HEAD" ? [] : [["Content-Length", "0"]];
}

function sendBody(
  request: IncomingMessage,
  outgoing: ClientRequest,
  limitBytes: number,
  fail: (failure: ExchangeFailure) => void,
): void {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > limitBytes) {
      request.unpipe(outgoing);
      fail("body_too_large");
    }
  });
  request.once("error", () => outgoing.destroy());
  request.pipe(outgoing);
}

async function answerWith(response: ServerResponse, answer: IncomingMessage, upstream: Upstream): Promise<void> {
  try {
    const headers = mapped(upstream, endToEnd(answer.rawHeaders));
    const body = upstream.mapBody?.(headers);
    const shown = body === undefined ? headers : without(headers, ["content-length"]);
    response.writeHead(answer.statusCode ?? 502, shown.flat());
    // An event stream's headers must not wait for its first event.
    response.flushHeaders();
    await (body === undefined ? pipeline(answer, response) : pipeline(answer, body, response));
  } catch {
    response.destroy();
  }
}

function mapped(upstream: Upstream, headers: HeaderList): HeaderList {
  return upstream.mapAnswer?.(headers) ?? headers;
}
