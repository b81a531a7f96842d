import { createHash } from "node:crypto";

/*
 * A browser keeps one set of cookies for all ports of a host: those of every local service, and of every preview. So the app
 * of a preview gets none but those that it has set itself, which the browser keeps by names of the preview's own.
 */

/** Holds the token of one preview. */
export function accessCookie(token: string): string {
  return `slipway_preview_${idOf(token)}`;
}

/** The app's cookies of a Cookie header, as the app calls them. Undefined: there are none. */
export function cookiesForApp(cookie: string, token: string): string | undefined {
  const prefix = prefixOf(token);
  const own = cookie
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix));
  return own.map((pair) => pair.slice(prefix.length)).join("; ") || undefined;
}

/** A cookie of the app's as the browser keeps it: for this host alone. Undefined: it has no name, and so could pass for any. */
export function cookieForBrowser(setCookie: string, token: string): string | undefined {
  const [pair = "", ...attributes] = setCookie.split(";").map((part) => part.trim());
  if (!/^[^=]+=/.test(pair)) return undefined;
  const kept = attributes.filter((attribute) => !/^domain\s*(=|$)/i.test(attribute));
  return [`${prefixOf(token)}${pair}`, ...kept].join("; ");
}

/** What stands before the names of the app's cookies. */
export function prefixOf(token: string): string {
  return `slipway_app_${idOf(token)}_`;
}

/** Pages see it: it tells nothing of the token. A port would not do: another state directory's preview may have had it. */
function idOf(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 16);
}
