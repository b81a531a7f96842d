import { createServer } from "node:net";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import { createConnectionQueue } from "../../../connection-queue.ts";
import type { KeeperClient } from "../../../keeper/client/client.ts";
import { sandboxNotFound } from "../../../keeper/record.ts";
import type { HostChannel } from "../../../provider.ts";
import { listenAt } from "../../../unix-socket.ts";
import { channelInside } from "../launch/launch.ts";
import type { Layout } from "../layout.ts";

/** The host channels that this process has open. Disposing of it closes them. */
export interface HostChannels extends AsyncDisposable {
  open(id: SandboxId): Promise<HostChannel>;
}

/** `exists` says whether the sandbox is recorded. */
export function createHostChannels(
  layout: Layout,
  keeper: Pick<KeeperClient, "connect" | "onEvent" | "onLost">,
  exists: (id: SandboxId) => Promise<boolean>,
): HostChannels {
  const channels = new Map<SandboxId, HostChannel>();
  const close = async (id: SandboxId) => {
    const channel = channels.get(id);
    channels.delete(id);
    await channel?.[Symbol.asyncDispose]();
  };
  const closeOrphans = async () => {
    if (channels.size === 0) return;
    await keeper.connect();
    for (const id of channels.keys()) if (!(await exists(id))) await close(id);
  };
  keeper.onEvent((event) => {
    if (event.type === "sandbox.destroyed") void close(event.sandbox);
  });
  // A dying keeper may not have reported a destroy: ask the next one.
  keeper.onLost(() => void closeOrphans().catch(() => undefined));
  return {
    async open(id) {
      await keeper.connect();
      const channel = await listenIn(layout.box(id), id).catch(async (error: unknown) => {
        throw (await exists(id)) ? error : sandboxNotFound(id);
      });
      channels.set(id, channel);
      if (await exists(id)) return channel;
      await close(id);
      throw sandboxNotFound(id);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels.keys()].map(close));
    },
  };
}

/**
 * The socket's directory is bound read-only into the sandbox and is never cleared while the sandbox exists. The lock
 * tells a live holder from the socket that a killed one left.
 */
async function listenIn(box: ReturnType<Layout["box"]>, id: SandboxId): Promise<HostChannel> {
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
