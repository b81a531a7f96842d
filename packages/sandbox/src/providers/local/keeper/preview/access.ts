import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { accessCookie } from "./cookies.ts";

export const tokenHeader = "x-slipway-token";
export const tokenParameter = "slipway_token";

export interface Visit {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly isUpgrade: boolean;
}

export type Access =
  | { readonly verdict: "enter"; readonly path: string }
  /** The token came in the address: keep it in a cookie and show an address without it. */
  | { readonly verdict: "remember"; readonly path: string }
  | { readonly verdict: "refuse"; readonly status: 400 | 401 | 403 | 421 };

/**
 * Decides who may see a preview. A cookie alone counts only for requests of the preview's own pages and for plain
 * navigation: a browser sends it along whatever page, or other preview on this host, made the request.
 */
export function decideAccess(visit: Visit, token: string, hostPort: number): Access {
  const { host, origin } = visit.headers;
  // A page whose own name was made to lead here is of another origin to the browser, and to nobody else.
  if (!ownHosts(hostPort).includes(host ?? "")) return { verdict: "refuse", status: 421 };
  const address = splitToken(visit.path);
  if (address === undefined) return { verdict: "refuse", status: 400 };
  const { path, tokens } = address;
  // Browsers let every page open a WebSocket to anywhere, and ask nobody but the server.
  if (visit.isUpgrade && origin !== undefined && origin !== `http://${host}`) return { verdict: "refuse", status: 403 };
  const given = visit.headers[tokenHeader];
  if (typeof given === "string" && isToken(given, token)) return { verdict: "enter", path };
  if (tokens.some((candidate) => isToken(candidate, token))) {
    return { verdict: isNavigation(visit) ? "remember" : "enter", path };
  }
  const hasCookie = cookiesNamed(visit.headers.cookie, accessCookie(token)).some((value) => isToken(value, token));
  if (!hasCookie) return { verdict: "refuse", status: 401 };
  return isOwnRequest(visit) ? { verdict: "enter", path } : { verdict: "refuse", status: 403 };
}

/** The names that a preview goes by. */
function ownHosts(hostPort: number): readonly string[] {
  return [`127.0.0.1:${hostPort}`, `localhost:${hostPort}`];
}

/** A person's visit. A program that follows the redirect would lose the cookie. */
function isNavigation({ method, headers, isUpgrade }: Visit): boolean {
  const isSafe = method === "GET" || method === "HEAD";
  const mode = headers["sec-fetch-mode"] ?? (headers.accept?.includes("text/html") ? "navigate" : "other");
  return !isUpgrade && isSafe && mode === "navigate";
}

function isOwnRequest({ method, headers, isUpgrade }: Visit): boolean {
  if (isUpgrade) return true;
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  const isSafe = method === "GET" || method === "HEAD";
  if (site === "same-origin" || site === "none") return true;
  if (site !== undefined) return isSafe && headers["sec-fetch-mode"] === "navigate";
  return origin === undefined ? true : origin === `http://${host}`;
}

/** Only paths are taken, no absolute addresses. */
function splitToken(path: string): { path: string; tokens: string[] } | undefined {
  return path.startsWith("/") ? takeToken(path) : undefined;
}

/** A path or an address without the token parameter, which never enters a sandbox. */
export function takeToken(path: string): { path: string; tokens: string[] } {
  const [pathname = "/", ...rest] = path.split("?");
  if (rest.length === 0) return { path, tokens: [] };
  const tokens: string[] = [];
  const kept = rest
    .join("?")
    .split("&")
    .filter((pair) => {
      const [name = "", value = ""] = pair.split("=", 2);
      if (decoded(name) !== tokenParameter) return true;
      tokens.push(decoded(value));
      return false;
    });
  if (tokens.length === 0) return { path, tokens };
  return { path: kept.length === 0 ? pathname : `${pathname}?${kept.join("&")}`, tokens };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function cookiesNamed(cookie: string | undefined, name: string): string[] {
  const pairs = (cookie ?? "").split(";").map((pair) => pair.trim().split("="));
  return pairs.filter(([key]) => key === name).map(([, value = ""]) => value);
}

/** In constant time, whatever the lengths. */
function isToken(candidate: string, token: string): boolean {
  const [a, b] = [candidate, token].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
