import { hasCode } from "@slipway/contract";
import type { HostChannel } from "../../provider.ts";

/** The channel of a sandbox that does not run yet: it is opened as soon as that can be reached. */
export function lateChannel(inside: string, open: (signal: AbortSignal) => Promise<HostChannel>): HostChannel {
  const closing = new AbortController();
  const opening = (async () => {
    while (!closing.signal.aborted) {
      try {
        return await open(closing.signal);
      } catch (error) {
        // Waiting for the sandbox has its own end.
        if (!hasCode(error, "provider_unavailable")) return null;
      }
    }
    return null;
  })();
  return {
    inside,
    async *connections(options = {}) {
      const channel = await opening;
      if (channel !== null) yield* channel.connections(options);
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await (await opening)?.[Symbol.asyncDispose]();
    },
  };
}
