import { domainToUnicode } from "node:url";
import { type Address, parseAddress } from "./address.ts";

export type Host =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "address"; readonly address: Address };

const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Parses the host of a request: a canonical address, IPv6 with or without brackets, or an ASCII domain name. Undefined
 * for anything else, above all for spellings that resolvers read as addresses (127.1, 0x7f.1, 2130706433).
 */
export function parseHost(text: string): Host | undefined {
  const bracketed = /^\[(.*)\]$/.exec(text);
  const address = parseAddress(bracketed?.[1] ?? text);
  if (address !== undefined) {
    if (bracketed !== null && !text.includes(":")) return undefined;
    return { kind: "address", address };
  }
  const name = parseName(text);
  return name === undefined ? undefined : { kind: "name", name };
}

function parseName(text: string): string | undefined {
  if (text.length > 254) return undefined;
  const name = text.toLowerCase().replace(/\.$/, "");
  const labels = name.split(".");
  if (name.length > 253 || !labels.every((part) => label.test(part))) return undefined;
  // inet_aton reads a name that ends in a number as an IPv4 address.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "")) return undefined;
  // Punycode that does not decode stays as it is.
  const decoded = domainToUnicode(name).split(".");
  return decoded.some((part) => part.startsWith("xn--")) ? undefined : name;
}

/** Splits `host:port`, `[v6]:port` or, with a default, `host`. */
export function parseAuthority(text: string, defaultPort?: number): { host: string; port: number } | undefined {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1];
  if (!host) return undefined;
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  return port === undefined || port < 1 || port > 65535 ? undefined : { host, port };
}
