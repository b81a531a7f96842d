import type { NetworkPolicy } from "@slipway/contract";
import type { SandboxUpdateNetworkPolicyParams } from "modal";

/** The hosts of npm, pip and apt of Modal's images. */
const registryHosts = [
  "registry.npmjs.org",
  "pypi.org",
  "files.pythonhosted.org",
  "deb.debian.org",
  "security.debian.org",
] as const;

/**
 * A policy as Modal keeps it, `ownRegistries` being the hosts of the packages that this machine is set to. One that allows nothing is an allow-list that reaches nothing: a sandbox whose network is
 * blocked can have no tunnel.
 */
export function allowlistsOf(
  { domains, cidrs, registries }: Pick<NetworkPolicy, "domains" | "cidrs" | "registries">,
  ownRegistries: readonly string[],
): Required<SandboxUpdateNetworkPolicyParams> {
  const packages = registries ? [...registryHosts, ...ownRegistries] : [];
  return {
    outboundDomainAllowlist: [...new Set([...domains, ...packages])],
    outboundCidrAllowlist: [...cidrs],
  };
}
