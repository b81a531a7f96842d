import { type Duplex, duplexPair } from "node:stream";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import { createConnectionQueue } from "../../connection-queue.ts";
import type { HostChannel } from "../../provider.ts";

const channelInside = "/run/slipway/run.sock";

/** A coordinator's host channel, as the sandbox has it. */
export interface BoxChannel {
  /** Null when nobody listens at the path. */
  dial(path: string): Duplex | null;
  close(): void;
}

/** The sandbox that it is a channel of. */
export interface ChannelHolder {
  readonly id: SandboxId;
  channel: BoxChannel | null;
}

/** The coordinator that listens: when it is gone, and when its streams are cut. */
interface Listener {
  readonly closed: AbortSignal;
  during(signal: undefined): AbortSignal;
}

export function openChannel(box: ChannelHolder, connection: Listener): HostChannel {
  if (box.channel !== null) throw new SlipwayError("channel_in_use", `The channel of ${box.id} is open already.`);
  const queue = createConnectionQueue();
  const channel = {
    dial(path: string) {
      if (path !== channelInside) return null;
      const [outside, inside] = duplexPair();
      connection.during(undefined).addEventListener("abort", () => outside.destroy(), { once: true });
      outside.once("close", () => inside.destroy());
      inside.once("close", () => outside.destroy());
      queue.push(outside);
      return inside;
    },
    close() {
      queue.close();
      if (box.channel === channel) box.channel = null;
    },
  };
  box.channel = channel;
  connection.closed.addEventListener("abort", channel.close, { once: true });
  return {
    inside: channelInside,
    connections: ({ signal } = {}) => queue.take(signal),
    async [Symbol.asyncDispose]() {
      connection.closed.removeEventListener("abort", channel.close);
      channel.close();
    },
  };
}
