import type { SandboxId } from "@slipway/contract";
import type { HostChannel } from "../../provider.ts";
import type { KeeperClient } from "../client/client.ts";
import { sandboxNotFound } from "../record.ts";

/** The host channels that this process has open. Disposing of it closes them. */
export interface HostChannels extends AsyncDisposable {
  open(id: SandboxId, signal?: AbortSignal): Promise<HostChannel>;
}

export interface ChannelParts {
  readonly keeper: Pick<KeeperClient, "connect" | "onEvent" | "onLost">;
  /** Whether the sandbox is recorded. */
  exists(id: SandboxId): Promise<boolean>;
  openIn(id: SandboxId, signal: AbortSignal | undefined): Promise<HostChannel>;
}

export function createHostChannels({ keeper, exists, openIn }: ChannelParts): HostChannels {
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
    async open(id, signal) {
      await keeper.connect();
      const channel = await openIn(id, signal).catch(async (error: unknown) => {
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
