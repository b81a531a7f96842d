import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { conformanceTools, describeProvider, spawnCoordinator } from "@slipway/sandbox/conformance";
import { modalCapabilities } from "@slipway/sandbox/modal";
import { openModal } from "./testing/provider.ts";

describeProvider("the provider on Modal", {
  capabilities: modalCapabilities,
  async setup() {
    const modal = await openModal({ tools: conformanceTools });
    const { standIn, provider, stateDir } = modal;
    // A browser trusts the authority of Modal's tunnels.
    setDefaultCACertificates([...getCACertificates(), readFileSync(standIn.caFile, "utf8")]);
    return {
      provider,
      otherCoordinator: () =>
        spawnCoordinator(new URL("testing/coordinator-fixture.ts", import.meta.url), [
          stateDir,
          JSON.stringify({ ...standIn.environment, SLIPWAY_MODAL_TUNNEL_CA: standIn.caFile }),
        ]),
      [Symbol.asyncDispose]: () => modal[Symbol.asyncDispose](),
    };
  },
});
