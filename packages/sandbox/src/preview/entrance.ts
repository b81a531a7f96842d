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
import { decideAccess, originOf, type Place, takeToken, tokenHeader } from "./access.ts";
import { accessCookie, cookieForBrowser, cookiesForApp } from "./cookies.ts";
import { pageCookies } from "./page-cookies.ts";
import { type Page, pageOf, pageOfFailure, sendPage } from "./pages.ts";

export interface EntranceOptions {
  /** The port inside the sandbox. */
  readonly port: number;
  readonly token: string;
  /** A new connection to the port. Rejects when nothing listens or the sandbox is not running. */
  readonly connect: (signal: AbortSignal) => Promise<Duplex>;
  /** The page for a visitor when it rejects. */
  readonly pageOnFailure?: ((error: unknown) => Page | Promise<Page>) | undefined;
  readonly seenAt: () => Place;
}

const limits: ExchangeLimits & { readonly connections: number; readonly headersMs: number } = {
  connections: 512,
  headersMs: 15_000,
  // Event streams and sockets of dev servers may be silent for long.
  idleMs: 60 * 60_000,
  headerBytes: 64 * 1024,
  bodyBytes: 4 * 1024 ** 3,
};

const failurePages: Record<ExchangeFailure, Page> = {
  upstream_failed: pageOf(502),
  upstream_timeout: pageOf(504),
  body_too_large: pageOf(413),
};

/** The server of one preview, not yet listening. */
export function createEntrance(options: EntranceOptions): Server {
  const server = createServer({
    insecureHTTPParser: false,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
  });
  server.maxConnections = limits.connections;
  // With a limit, Node silently drops headers past it, even framing. maxHeaderSize bounds them.
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
  if (access.verdict === "refuse") return sendPage(response, pageOf(access.status));
  if (access.verdict === "remember") return remember(request, response, access.path, options);
  if (!isForwardable(request)) return sendPage(response, pageOf(501));
  const reached = await reach(response, options);
  if ("page" in reached) return sendPage(response, reached.page);
  const upstream = upstreamFor(request, reached.connection, access.path, options);
  exchange(request, response, upstream, limits, (failure) => sendPage(response, failurePages[failure]));
}

async function onUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  options: EntranceOptions,
): Promise<void> {
  const refuse = (page: Page) => sendPage(responseOn(request, client), page);
  const access = decide(request, options, true);
  if (access.verdict === "refuse") return refuse(pageOf(access.status));
  const reached = await reach(client, options);
  if ("page" in reached) return refuse(reached.page);
  const upstream = upstreamFor(request, reached.connection, access.path, options);
  exchangeUpgrade(request, client, head, upstream, limits, (failure) => refuse(failurePages[failure]));
}

function decide(
  { method = "GET", url = "", headers }: IncomingMessage,
  { token, seenAt }: EntranceOptions,
  isUpgrade: boolean,
) {
  return decideAccess({ method, path: url, headers, isUpgrade }, token, seenAt());
}

async function reach(
  client: Duplex | ServerResponse,
  { connect, pageOnFailure = pageOfFailure }: EntranceOptions,
): Promise<{ readonly connection: Duplex } | { readonly page: Page }> {
  const abort = new AbortController();
  client.once("close", () => abort.abort());
  try {
    const connection = await connect(abort.signal);
    // An error before the exchange listens must not end the process.
    connection.on("error", () => connection.destroy());
    if (client.destroyed) connection.destroy();
    return { connection };
  } catch (error) {
    return { page: await pageOnFailure(error) };
  }
}

function remember(
  { headers }: IncomingMessage,
  response: ServerResponse,
  path: string,
  { token }: EntranceOptions,
): void {
  const secure = originOf(headers.host).startsWith("https:") ? "; Secure" : "";
  response.writeHead(303, {
    // Two slashes or a backslash would lead to another host.
    Location: path.replace(/^[/\\]+/, "/"),
    "Set-Cookie": `${accessCookie(token)}=${token}; Path=/; HttpOnly; SameSite=Lax${secure}`,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Length": 0,
  });
  response.end();
}

/**
 * The app gets the browser's Host: frameworks compare it with Origin, and dev servers accept loopback. They would refuse the
 * name of a tunnel, so there both are those of the port inside.
 */
function upstreamFor(
  request: IncomingMessage,
  connection: Duplex,
  path: string,
  { port, token, seenAt }: EntranceOptions,
): Upstream {
  const { host = "" } = request.headers;
  const inner = seenAt() === "tunnel" ? `localhost:${port}` : host;
  const asInside = (address: string) =>
    address === originOf(host) || address.startsWith(`${originOf(host)}/`)
      ? `http://${inner}${address.slice(originOf(host).length)}`
      : address;
  // Pages come unencoded, so that a script can be added.
  const isVisit = ["document", "iframe"].includes(String(request.headers["sec-fetch-dest"]));
  const dropped = ["host", tokenHeader, ...forwardedNames, ...(isVisit ? ["accept-encoding"] : [])];
  const kept = without(endToEnd(request.rawHeaders), dropped);
  const own = mapHeader(kept, "cookie", (cookie) => cookiesForApp(cookie, token));
  const headers: HeaderList = [
    ["Host", inner],
    // Of a page that was not asked for by a visit, such as the answer to a form.
    ...mapHeader(mapHeader(own, "origin", asInside), "referer", (referer) => asInside(takeToken(referer).path)),
  ];
  const setCookies = (answer: HeaderList) =>
    mapHeader(answer, "set-cookie", (cookie) => cookieForBrowser(cookie, token));
  const redirect = (answer: HeaderList) => mapHeader(answer, "location", (location) => atPreview(location, port));
  return {
    connection,
    path,
    headers,
    ...(isVisit && { mapBody: (answer) => pageCookies(answer, token) }),
    // Clear-Site-Data would clear the cookies of all services of this host.
    mapAnswer: (answer) => redirect(setCookies(without(answer, ["clear-site-data"]))),
  };
}

const forwardedNames = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"];

/** Maps the values of one header; undefined drops it. */
function mapHeader(headers: HeaderList, mapped: string, map: (value: string) => string | undefined): HeaderList {
  return headers.flatMap(([name, value]): HeaderList => {
    if (name.toLowerCase() !== mapped) return [[name, value]];
    const changed = map(value);
    return changed === undefined ? [] : [[name, changed]];
  });
}

/** Keeps a redirect to the server's own port on the preview's address. */
function atPreview(location: string, port: number): string {
  const inner = `http://localhost:${port}`;
  return location.startsWith(`${inner}/`) ? location.slice(inner.length).replace(/^[/\\]+/, "/") : location;
}
