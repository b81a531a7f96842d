import { BlockList, isIP } from "node:net";
import type { EgressRefusal, NetworkPolicy } from "@slipway/contract";
import type { Box } from "./box.ts";

/** The headers that the egress adds for a destination; null when the policy refuses it, which is recorded. */
export function egress(box: Box, host: string, port: number): Readonly<Record<string, string>> | null {
  const rule = refusal(box.network, host, port);
  if (rule !== null) {
    box.emit({ type: "egress.refused", host, port, rule, count: 1 });
    return null;
  }
  const secrets = box.network.secrets.filter(
    (secret) => secret.host === host && port === (secret.scheme === "http" ? 80 : 443),
  );
  return Object.fromEntries(secrets.map(({ header, value }) => [header, value]));
}

function refusal(policy: NetworkPolicy, host: string, port: number): EgressRefusal | null {
  const named = isIP(host) === 0 ? policy.domains.some((domain) => covers(domain, host)) : inRanges(policy.cidrs, host);
  if (!named) return "not_allowed";
  return policy.ports.includes(port) ? null : "port";
}

function covers(domain: string, host: string): boolean {
  return domain.startsWith("*.") ? host.endsWith(domain.slice(1)) : host === domain;
}

function inRanges(cidrs: readonly string[], address: string): boolean {
  const ranges = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits = "0"] = cidr.split("/");
    ranges.addSubnet(network, Number(bits), isIP(network) === 6 ? "ipv6" : "ipv4");
  }
  return ranges.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
