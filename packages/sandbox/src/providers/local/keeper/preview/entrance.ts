import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import {
  type ExchangeFailure,
  type ExchangeLimits,
  exchange,
  exchangeUpgrade,
  isForwardable,
  responseOn,
  type Upstream,
} from "../relay/exchange.ts";
import { endToEnd, type HeaderList, without } from "../relay/headers.ts";
import { cookieName, decideAccess, setsPreviewCookie, tokenHeader, withoutPreviewCookies } from "./access.ts";
import { type PageStatus, sendPage, statusOf } from "./pages.ts";

export interface EntranceOptions {
  /** The port inside the sandbox. */
  readonly port: number;
  readonly token: string;
  /** A new connection to the port. Rejects when nothing listens or the sandbox is not running. */
  readonly connect: (signal: AbortSignal) => Promise<Duplex>;
  readonly limits: ExchangeLimits & { readonly connections: number; readonly headersMs: number };
  readonly hostPort: () => number;
}

const failurePages: Record<ExchangeFailure, PageStatus> = {
  upstream_failed: 502,
  upstream_timeout: 504,
  body_too_large: 413,
};

/** The server of one preview, not yet listening. */
export function createEntrance(options: EntranceOptions): Server {
  const { limits } = options;
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
  });
  server.maxConnections = limits.connections;
  // Node would silently drop headers past a count, framing included; their bytes are bounded above.
  server.maxHeadersCount = 0;
  server.on("request", (request, response) => {
    onRequest(request, response, options).catch(() => response.destroy());
  });
  server.on("upgrade", (request, client, head) => {
    client.on("error", () => client.destroy());
    onUpgrade(request, client, head, options).catch(() => client.destroy());
  });
  return server;
}

async function onRequest(request: IncomingMessage, response: ServerResponse, options: EntranceOptions): Promise<void> {
  const access = decide(request, options, false);
  if (access.verdict === "refuse") return sendPage(response, access.status);
  if (access.verdict === "remember") return remember(response, access.path, options);
  if (!isForwardable(request)) return sendPage(response, 501);
  const connection = await reach(response, options);
  if (typeof connection === "number") return sendPage(response, connection);
  const upstream = upstreamFor(request, connection, access.path, options);
  exchange(request, response, upstream, options.limits, (failure) => sendPage(response, failurePages[failure]));
}

async function onUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  options: EntranceOptions,
): Promise<void> {
  const refuse = (status: PageStatus) => sendPage(responseOn(request, client), status);
  const access = decide(request, options, true);
  if (access.verdict === "refuse") return refuse(access.status);
  const connection = await reach(client, options);
  if (typeof connection === "number") return refuse(connection);
  const upstream = upstreamFor(request, connection, access.path, options);
  exchangeUpgrade(request, client, head, upstream, options.limits, (failure) => refuse(failurePages[failure]));
}

function decide(
  { method = "GET", url = "", headers }: IncomingMessage,
  { token, hostPort }: EntranceOptions,
  isUpgrade: boolean,
) {
  return decideAccess({ method, path: url, headers, isUpgrade }, token, hostPort());
}

async function reach(client: Duplex | ServerResponse, { connect }: EntranceOptions): Promise<Duplex | PageStatus> {
  const abort = new AbortController();
  client.once("close", () => abort.abort());
  try {
    const connection = await connect(abort.signal);
    // Until the exchange listens, an error must not end the process.
    connection.on("error", () => connection.destroy());
    if (client.destroyed) connection.destroy();
    return connection;
  } catch (error) {
    return statusOf(error);
  }
}

function remember(response: ServerResponse, path: string, { token, hostPort }: EntranceOptions): void {
  response.writeHead(303, {
    // Two slashes, or a backslash, would lead to another host.
    Location: path.replace(/^[/\\]+/, "/"),
    "Set-Cookie": `${cookieName(hostPort())}=${token}; Path=/; HttpOnly; SameSite=Lax`,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Length": 0,
  });
  response.end();
}

function upstreamFor(
  request: IncomingMessage,
  connection: Duplex,
  path: string,
  { port, hostPort }: EntranceOptions,
): Upstream {
  const inner = `localhost:${port}`;
  const kept = without(endToEnd(request.rawHeaders), ["host", tokenHeader, "forwarded", ...forwardedNames]).flatMap(
    stripCookies,
  );
  const headers: HeaderList = [
    // Development servers refuse names they do not know.
    ["Host", inner],
    ...kept,
    ["X-Forwarded-For", request.socket.remoteAddress ?? "127.0.0.1"],
    ["X-Forwarded-Host", request.headers.host ?? `127.0.0.1:${hostPort()}`],
    ["X-Forwarded-Port", String(hostPort())],
    ["X-Forwarded-Proto", "http"],
  ];
  return { connection, path, headers, mapAnswer: (answer) => answer.flatMap((header) => mapAnswer(header, inner)) };
}

const forwardedNames = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"];

function stripCookies([name, value]: HeaderList[number]): HeaderList {
  if (name.toLowerCase() !== "cookie") return [[name, value]];
  const cookie = withoutPreviewCookies(value);
  return cookie === undefined ? [] : [[name, cookie]];
}

/** The sandbox sets no preview's cookie, and its redirects to itself stay on the preview's address. */
function mapAnswer([name, value]: HeaderList[number], inner: string): HeaderList {
  if (name.toLowerCase() === "set-cookie" && setsPreviewCookie(value)) return [];
  const isRedirect = name.toLowerCase() === "location" && value.startsWith(`http://${inner}/`);
  return [[name, isRedirect ? value.slice(`http://${inner}`.length).replace(/^[/\\]+/, "/") : value]];
}
