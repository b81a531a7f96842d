import type { InjectedSecret, NetworkPolicy } from "@slipway/contract";
import { formatAddress, parseRange, type Range } from "./address.ts";
import { parseAuthority, parseHost } from "./host.ts";
import { namesSpecial } from "./special.ts";

/** A host and port that may be dialled whatever `domains`, `cidrs` and `ports` say. */
export interface Destination {
  readonly host: string;
  readonly port: number;
  /** It may resolve to a private or loopback address, but not to a link-local one. For the host's own settings. */
  readonly allowPrivate?: boolean;
}

/** A policy, compiled for decisions. */
export interface Rules {
  allowsName(name: string): boolean;
  readonly ports: ReadonlySet<number>;
  /** All ranges of the policy. Literal addresses must be in one. */
  readonly ranges: readonly Range[];
  /** Those that also open special addresses. */
  readonly openRanges: readonly Range[];
  /** By `host port`. */
  readonly destinations: ReadonlyMap<string, Destination>;
  /** Headers to inject for this host and port over this scheme. */
  secretsFor(name: string, port: number, scheme: Scheme): readonly InjectedSecret[];
}

/** `https`: over TLS, to a server with a verified name. */
export type Scheme = "https" | "http";

/** The ports for which secrets are injected; a secret also opens its port. */
const portOf = { https: 443, http: 80 } as const satisfies Record<Scheme, number>;

export function compileRules(policy: NetworkPolicy, registries: readonly Destination[] = []): Rules {
  const exact = new Set(policy.domains.filter((domain) => !domain.startsWith("*.")));
  const suffixes = policy.domains.filter((domain) => domain.startsWith("*.")).map((domain) => domain.slice(1));
  const ranges = policy.cidrs.map(parseRange).filter((range) => range !== undefined);
  const secrets = Map.groupBy(policy.secrets, ({ host, scheme = "https" }) => `${scheme}://${host}`);
  return {
    allowsName: (name) =>
      exact.has(name) || suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length),
    ports: new Set(policy.ports),
    ranges,
    openRanges: ranges.filter(namesSpecial),
    destinations: compileDestinations(policy, registries),
    secretsFor: (name, port, scheme) => (port === portOf[scheme] ? (secrets.get(`${scheme}://${name}`) ?? []) : []),
  };
}

function compileDestinations(
  policy: NetworkPolicy,
  registries: readonly Destination[],
): ReadonlyMap<string, Destination> {
  const named: Destination[] = [
    ...policy.forwards.map(({ to }) => parseAuthority(to)).filter((destination) => destination !== undefined),
    ...policy.secrets.map(({ host, scheme = "https" }) => ({ host, port: portOf[scheme] })),
    ...(policy.registries ? registries : []),
  ];
  const destinations = new Map<string, Destination>();
  for (const destination of named) {
    const host = parseHost(destination.host);
    if (host === undefined) continue;
    const key = `${host.kind === "name" ? host.name : formatAddress(host.address)} ${destination.port}`;
    if (destinations.get(key)?.allowPrivate !== true) destinations.set(key, destination);
  }
  return destinations;
}
