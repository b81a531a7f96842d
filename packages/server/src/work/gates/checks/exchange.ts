import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { hasCode } from "@slipway/contract";
import { devServerPort } from "@slipway/sandbox";

/** Opens a byte pipe to the app. */
export type Connect = (signal: AbortSignal) => Promise<Duplex>;

/** The app's address as the checks know it. */
export const appOrigin = new URL(`http://localhost:${devServerPort}`);

export interface ExchangeLimits {
  /** For the whole exchange, redirects included. */
  readonly timeMs: number;
  readonly bodyBytes: number;
  readonly headerBytes: number;
  readonly redirects: number;
}

export const usualExchangeLimits: ExchangeLimits = {
  timeMs: 10_000,
  bodyBytes: 1024 ** 2,
  headerBytes: 32 * 1024,
  redirects: 5,
};

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  /** A redirect with a final status is not followed. */
  isFinal(status: number): boolean;
}

/** What an app answered, or how it failed to. */
export type Answer = { readonly status: number; readonly body: string } | { readonly failure: string };

const maxCookies = 50;
const maxCookieCharacters = 4096;
const followed = new Set([301, 302, 303, 307, 308]);

/** One client of an app, with the cookies that the app has set. It connects to nothing else, wherever the app redirects. */
export function createHttpClient(connect: Connect, origin: URL, limits: ExchangeLimits) {
  const cookies = new Map<string, string>();

  const once = async ({ method, path, body }: Omit<Exchange, "isFinal">, signal: AbortSignal) => {
    await using parts = new AsyncDisposableStack();
    const connection = await connect(signal);
    parts.defer(() => void connection.destroy());
    const headers = { ...headersOf(origin, body), ...cookieHeader(cookies) };
    const asked = request({
      createConnection: () => connection,
      method,
      path,
      headers,
      signal,
      maxHeaderSize: limits.headerBytes,
    });
    const response = await responseTo(asked, body);
    keepCookies(cookies, response.headers["set-cookie"] ?? []);
    return {
      status: response.statusCode ?? 0,
      location: response.headers.location,
      body: await readBody(response, limits),
    };
  };

  const follow = async ({ isFinal, ...first }: Exchange, signal: AbortSignal): Promise<Answer> => {
    let next = first;
    for (let redirects = 0; ; redirects++) {
      const { status, location, body } = await once(next, signal);
      if (isFinal(status) || location === undefined || !followed.has(status)) return { status, body };
      if (redirects === limits.redirects) return { failure: `redirected more than ${limits.redirects} times` };
      const target = URL.parse(location, new URL(next.path, origin).href) ?? undefined;
      if (target?.origin !== origin.origin) return { failure: `redirected out of the app (${status})` };
      const keeps = status === 307 || status === 308;
      next = {
        path: target.pathname + target.search,
        method: keeps ? next.method : "GET",
        body: keeps ? next.body : null,
      };
    }
  };

  return {
    async exchange(exchange: Exchange, signal: AbortSignal): Promise<Answer> {
      const deadline = AbortSignal.timeout(limits.timeMs);
      try {
        return await follow(exchange, AbortSignal.any([signal, deadline]));
      } catch (error) {
        signal.throwIfAborted();
        if (deadline.aborted) return { failure: `did not answer completely within ${limits.timeMs / 1000} seconds` };
        if (error instanceof TooLarge) return { failure: `answered with more than ${limits.bodyBytes} bytes` };
        if (hasCode(error, "connection_refused")) return { failure: "refused the connection" };
        const { code } = error as NodeJS.ErrnoException;
        // A broken connection or malformed HTTP is the app's fault; everything else is ours.
        if (code === "ECONNRESET" || code === "EPIPE")
          return { failure: "closed the connection before it had answered" };
        if (code?.startsWith("HPE_")) return { failure: `gave an answer that is not HTTP (${code})` };
        throw error;
      }
    },
  };
}

class TooLarge extends Error {}

function headersOf(origin: URL, body: string | null): Record<string, string> {
  const always = { host: origin.host, connection: "close", accept: "*/*", "accept-encoding": "identity" };
  if (body === null) return always;
  const type = isJson(body) ? "application/json" : "text/plain; charset=utf-8";
  return { ...always, "content-type": type, "content-length": String(Buffer.byteLength(body)) };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function responseTo(asked: ClientRequest, body: string | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.on("error", reject).once("response", resolve);
    // An upgrade to another protocol closes the connection without an error event.
    asked.once("close", () => reject(Object.assign(new Error("the connection was closed"), { code: "ECONNRESET" })));
    asked.end(body ?? undefined);
  });
}

async function readBody(response: IncomingMessage, { bodyBytes }: ExchangeLimits): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytes) throw new TooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function cookieHeader(cookies: ReadonlyMap<string, string>): { cookie?: string } {
  return cookies.size === 0 ? {} : { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
}

/** By name alone: there is one app, and no check lives long enough for a cookie to expire. */
function keepCookies(cookies: Map<string, string>, lines: readonly string[]): void {
  for (const line of lines) {
    const [pair = "", ...attributes] = line.split(";");
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals).trim();
    if (equals < 1 || pair.length > maxCookieCharacters) continue;
    if (attributes.some(hasEnded)) cookies.delete(name);
    else if (cookies.has(name) || cookies.size < maxCookies) cookies.set(name, pair.slice(equals + 1).trim());
  }
}

function hasEnded(attribute: string): boolean {
  const [name = "", value = ""] = attribute.split("=").map((part) => part.trim());
  if (name.toLowerCase() === "max-age") return Number(value) <= 0;
  return name.toLowerCase() === "expires" && Date.parse(value) <= Date.now();
}
