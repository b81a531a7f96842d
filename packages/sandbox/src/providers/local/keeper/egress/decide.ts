import type { EgressRefusal } from "@slipway/contract";
import { type Address, contains, embeddedIPv4, formatAddress, parseAddress } from "./address.ts";
import { type Host, parseHost } from "./host.ts";
import type { Destination, Rules } from "./rules.ts";
import { isPrivateNetwork, isSpecial } from "./special.ts";

export interface Target {
  /** As the client wrote it. */
  readonly host: string;
  readonly port: number;
}

export interface Refused {
  readonly verdict: "refuse";
  readonly rule: EgressRefusal;
}

/** The addresses to dial, in order of preference: these and no others. */
export interface Dial {
  readonly verdict: "dial";
  readonly addresses: readonly [string, ...string[]];
}

/** Look up the name, then ask `decideAddresses`. */
export interface Lookup {
  readonly verdict: "lookup";
  readonly name: string;
}

/** The whole decision for a target whose addresses are known. */
export function decide(
  rules: Rules,
  target: Target,
  resolved: readonly string[],
  ownAddresses: readonly string[] = [],
): Dial | Refused {
  const decision = decideHost(rules, target, ownAddresses);
  return decision.verdict === "lookup" ? decideAddresses(rules, target, resolved, ownAddresses) : decision;
}

/** Decides without a lookup. Names that the policy does not allow are never looked up: a lookup carries data out. */
export function decideHost(
  rules: Rules,
  target: Target,
  ownAddresses: readonly string[] = [],
): Dial | Lookup | Refused {
  const host = parseHost(target.host);
  if (host === undefined) return refuse("malformed");
  const destination = findDestination(rules, host, target.port);
  if (host.kind === "name") {
    if (destination === undefined && !rules.allowsName(host.name)) return refuse("not_allowed");
    if (destination === undefined && !rules.ports.has(target.port)) return refuse("port");
    return { verdict: "lookup", name: host.name };
  }
  if (!mayDial(rules, host.address, destination, ownAddresses)) return refuse("private_address");
  if (destination === undefined && !rules.ranges.some((range) => contains(range, host.address)))
    return refuse("not_allowed");
  if (destination === undefined && !rules.ports.has(target.port)) return refuse("port");
  return { verdict: "dial", addresses: [formatAddress(host.address)] };
}

/** Keeps the addresses at which an allowed name may be dialled. */
export function decideAddresses(
  rules: Rules,
  target: Target,
  resolved: readonly string[],
  ownAddresses: readonly string[] = [],
): Dial | Refused {
  const host = parseHost(target.host);
  const destination = host && findDestination(rules, host, target.port);
  const addresses = resolved.map(parseAddress).filter((address) => address !== undefined);
  if (addresses.length === 0) return refuse("unresolved");
  const [first, ...rest] = addresses
    .filter((address) => mayDial(rules, address, destination, ownAddresses))
    .map(formatAddress);
  return first === undefined ? refuse("private_address") : { verdict: "dial", addresses: [first, ...rest] };
}

/** Special addresses and the host's own need a range that names them. */
function mayDial(
  rules: Rules,
  address: Address,
  destination: Destination | undefined,
  ownAddresses: readonly string[],
): boolean {
  const forms = [address, embeddedIPv4(address)].filter((form) => form !== undefined);
  return forms.every((form) => {
    const isOwn = ownAddresses.some((own) => isSame(parseAddress(own), form));
    if (!isOwn && !isSpecial(form)) return true;
    if (destination?.allowPrivate === true && (isPrivateNetwork(form) || (isOwn && !isSpecial(form)))) return true;
    return rules.openRanges.some((range) => contains(range, form));
  });
}

function findDestination(rules: Rules, host: Host, port: number): Destination | undefined {
  const key = host.kind === "name" ? host.name : formatAddress(host.address);
  return rules.destinations.get(`${key} ${port}`);
}

function isSame(a: Address | undefined, b: Address): boolean {
  return a?.family === b.family && a.value === b.value;
}

function refuse(rule: EgressRefusal): Refused {
  return { verdict: "refuse", rule };
}
