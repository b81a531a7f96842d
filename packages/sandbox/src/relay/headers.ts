/** Name and value pairs in the order and spelling of the wire. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** They belong to one connection (RFC 9110, 7.6.1). Each side gets its own framing. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The headers to forward: without hop-by-hop headers and those that `Connection` names. */
export function endToEnd(rawHeaders: readonly string[]): HeaderList {
  const pairs = headerPairs(rawHeaders);
  const named = pairs
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.toLowerCase().split(","));
  const dropped = new Set(named.map((token) => token.trim()));
  // The message needs these, so Connection cannot drop them.
  dropped.delete("content-length");
  dropped.delete("host");
  return pairs.filter(([name]) => !hopByHop.has(name.toLowerCase()) && !dropped.has(name.toLowerCase()));
}

export function without(headers: HeaderList, names: readonly string[]): HeaderList {
  const dropped = new Set(names.map((name) => name.toLowerCase()));
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}

function headerPairs(rawHeaders: readonly string[]): HeaderList {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) pairs.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
  return pairs;
}
