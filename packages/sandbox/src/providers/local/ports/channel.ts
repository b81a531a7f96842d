import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import { takeLock } from "@slipway/host";
import type { HostChannel } from "../../../provider.ts";
import type { KeeperClient } from "../keeper/client/client.ts";
import { channelInside } from "../launch/launch.ts";
import type { BoxLayout, Layout } from "../layout.ts";
import { createConnectionQueue } from "./connection-queue.ts";

/** The host channels that this process has open. Disposing of it closes them all. */
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
  // A destroy that a keeper's death swallowed was told to nobody. Without a keeper, the next one to come is asked.
  keeper.onLost(() => void closeOrphans().catch(() => undefined));
  return {
    async open(id) {
      await keeper.connect();
      const channel = await listenIn(layout.box(id), id).catch(async (error: unknown) => {
        throw (await exists(id)) ? error : notFound(id);
      });
      channels.set(id, channel);
      if (await exists(id)) return channel;
      await close(id);
      throw notFound(id);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels.keys()].map(close));
    },
  };
}

/**
 * The socket lies in a directory that is bound into the sandbox, is never cleared while the sandbox exists, and can not be
 * written to from inside. The lock tells a live holder from the socket that a killed one left.
 */
async function listenIn({ channelSocket: path, channelLock }: BoxLayout, id: SandboxId): Promise<HostChannel> {
  const lock = await takeLock(channelLock);
  if (lock === undefined) throw new SlipwayError("channel_in_use", `the channel of ${id} is open already`);
  const queue = createConnectionQueue();
  const server = createServer({ allowHalfOpen: true }, (socket) => queue.push(socket));
  try {
    await listen(server, path);
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

async function listen(server: Server, path: string): Promise<void> {
  rmSync(path, { force: true });
  const listening = once(server, "listening");
  // For all, because as root the sandbox is another user; who can reach it, the directory says. Bound with its mode from the
  // start: a chmod afterwards would follow a link planted meanwhile.
  const umask = process.umask(0o111);
  try {
    server.listen(path);
  } finally {
    process.umask(umask);
  }
  await listening;
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
}

function notFound(id: SandboxId): SlipwayError {
  return new SlipwayError("sandbox_not_found", `there is no sandbox ${id}`);
}
