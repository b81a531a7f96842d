import { createServer } from "node:net";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import { createConnectionQueue } from "../../../connection-queue.ts";
import type { HostChannel } from "../../../provider.ts";
import { listenAt } from "../../../unix-socket.ts";
import { channelInside } from "../launch/launch.ts";
import type { Layout } from "../layout.ts";

/**
 * The socket's directory is bound read-only into the sandbox and is never cleared while the sandbox exists. The lock
 * tells a live holder from the socket that a killed one left.
 */
export async function listenIn(box: ReturnType<Layout["box"]>, id: SandboxId): Promise<HostChannel> {
  const lock = await takeLock(box.channelLock);
  if (lock === undefined) throw new SlipwayError("channel_in_use", `The channel of ${id} is already open.`);
  const queue = createConnectionQueue();
  const server = createServer({ allowHalfOpen: true }, (socket) => queue.push(socket));
  try {
    // For every user, because as root the sandbox has another uid; the directory decides who can reach the socket.
    await listenAt(server, box.channelSocket, 0o666);
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
  return {
    inside: channelInside,
    connections: ({ signal } = {}) => queue.take(signal),
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      queue.close();
      await server[Symbol.asyncDispose]();
      lock[Symbol.dispose]();
    },
  };
}
