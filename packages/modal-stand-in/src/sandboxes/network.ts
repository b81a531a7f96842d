import type { NetworkPolicyInput } from "@slipway/contract";
import { type NetworkAccess, networkAccess } from "../wire.ts";

/** Who may reach these may reach what this machine has instead of them. */
const publicRegistries = ["registry.npmjs.org", "pypi.org"];

/**
 * The nearest policy of the local provider. Open means the public internet on the ports of the web, and the package
 * registries that this machine is set to; private addresses stay closed, this machine's own among them.
 */
export function localPolicy(access: NetworkAccess | undefined): NetworkPolicyInput {
  switch (access?.networkAccessType) {
    case networkAccess.blocked:
      return {};
    case networkAccess.allowlist:
      return {
        domains: [...access.allowedDomains],
        cidrs: [...access.allowedCidrs],
        registries: publicRegistries.some((host) => access.allowedDomains.includes(host)),
      };
    default:
      return { cidrs: ["0.0.0.0/0", "::/0"], registries: true };
  }
}
