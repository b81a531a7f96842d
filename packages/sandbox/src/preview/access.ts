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
  /** The token is in the address: set a cookie and redirect to the address without it. */
  | { readonly verdict: "remember"; readonly path: string }
  | { readonly verdict: "refuse"; readonly status: 400 | 401 | 403 | 421 };

/** Where visitors see a preview: at a port of this machine's loopback, or at a tunnel that has a name of its own. */
export type Place = number | "tunnel";

/**
 * Decides who may see a preview. A cookie alone counts only for requests of the preview's own pages and for
 * navigation: a browser also sends it with requests of other pages and other previews on this host.
 */
export function decideAccess(visit: Visit, token: string, place: Place): Access {
  const { host, origin } = visit.headers;
  // Against DNS rebinding: only the browser knows such a page by another origin. A tunnel's name leads nowhere else.
  if (!isOwnHost(host ?? "", place)) return { verdict: "refuse", status: 421 };
  const address = splitToken(visit.path);
  if (address === undefined) return { verdict: "refuse", status: 400 };
  const { path, tokens } = address;
  // Browsers let any page open a WebSocket to anywhere; only the server can refuse.
  if (visit.isUpgrade && origin !== undefined && origin !== originOf(host)) return { verdict: "refuse", status: 403 };
  const given = visit.headers[tokenHeader];
  if (typeof given === "string" && isToken(given, token)) return { verdict: "enter", path };
  if (tokens.some((candidate) => isToken(candidate, token))) {
    return { verdict: isNavigation(visit) ? "remember" : "enter", path };
  }
  const hasCookie = cookiesNamed(visit.headers.cookie, accessCookie(token)).some((value) => isToken(value, token));
  if (!hasCookie) return { verdict: "refuse", status: 401 };
  return isOwnRequest(visit) ? { verdict: "enter", path } : { verdict: "refuse", status: 403 };
}

function isOwnHost(host: string, place: Place): boolean {
  return place === "tunnel" ? host !== "" : host === `127.0.0.1:${place}` || host === `localhost:${place}`;
}

/** The origin of a preview's own pages: a tunnel ends TLS outside. */
export function originOf(host: string | undefined): string {
  return `${/^(127\.0\.0\.1|localhost)(:|$)/.test(host ?? "") ? "http" : "https"}://${host}`;
}

/** A person's visit. A program would follow the redirect without the cookie. */
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
  return origin === undefined || origin === originOf(host);
}

/** Undefined for an absolute address. */
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

/** In constant time for any length. */
function isToken(candidate: string, token: string): boolean {
  const [a, b] = [candidate, token].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
