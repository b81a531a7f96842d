import { describeProvider, perform, scriptedShell } from "../../conformance/index.ts";
import {
  createManualClock,
  createSimulatedProvider,
  type SimulatedProvider,
  simulatedCapabilities,
  sleep,
} from "./index.ts";

describeProvider("the simulated provider", {
  capabilities: simulatedCapabilities,
  async setup() {
    const clock = createManualClock();
    const provider = createSimulatedProvider({ clock, programs: { sh: scriptedShell } });
    let flows = true;
    const flow = (async () => {
      while (flows) await clock.advance(1);
    })();
    return {
      provider,
      clock: { now: () => clock.now(), sleep: (ms) => sleep(clock, ms) },
      async otherCoordinator() {
        const other = provider.another();
        return { send: (task) => perform(other, task), kill: async () => await other[Symbol.asyncDispose]() };
      },
      async [Symbol.asyncDispose]() {
        flows = false;
        await flow;
        await provider[Symbol.asyncDispose]();
      },
    };
  },
  cutConnections: async ({ provider }) => (provider as SimulatedProvider).faults.cutStreams(),
});
