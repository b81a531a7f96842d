import { createHash } from "node:crypto";

/*
 * A browser shares cookies between all ports of a host: those of all local services and previews. So the app of a preview gets
 * only its own cookies, which the browser keeps under names of that preview.
 */

/** The cookie that holds a preview's token. */
export function accessCookie(token: string): string {
  return `slipway_preview_${idOf(token)}`;
}

/** The app's cookies in a Cookie header, by the app's names; undefined when there are none. */
export function cookiesForApp(cookie: string, token: string): string | undefined {
  const prefix = prefixOf(token);
  const own = cookie
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix));
  return own.map((pair) => pair.slice(prefix.length)).join("; ") || undefined;
}

/** The app's cookie for the browser, for this host only. Undefined for a nameless one, which could pass for any. */
export function cookieForBrowser(setCookie: string, token: string): string | undefined {
  const [pair = "", ...attributes] = setCookie.split(";").map((part) => part.trim());
  if (!/^[^=]+=/.test(pair)) return undefined;
  const kept = attributes.filter((attribute) => !/^domain\s*(=|$)/i.test(attribute));
  return [`${prefixOf(token)}${pair}`, ...kept].join("; ");
}

/** The prefix of the app's cookie names. */
export function prefixOf(token: string): string {
  return `slipway_app_${idOf(token)}_`;
}

/** Pages see it, so it must not reveal the token. A port would not be unique: another state directory may have used it. */
function idOf(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 16);
}
