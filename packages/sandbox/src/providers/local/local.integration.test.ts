import { conformanceTools, describeProvider, spawnCoordinator } from "../../conformance/index.ts";
import { localCapabilities } from "./index.ts";
import { setUpLocal } from "./testing.ts";

describeProvider("the local provider", {
  capabilities: localCapabilities,
  async setup() {
    const local = setUpLocal(process.env, conformanceTools);
    return {
      provider: local.provider,
      otherCoordinator: () => spawnCoordinator(new URL("coordinator-fixture.ts", import.meta.url), [local.stateDir]),
      [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
    };
  },
});
