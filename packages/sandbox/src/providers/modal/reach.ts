import { EventEmitter, once } from "node:events";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import type { KeeperClient } from "../../keeper/client/client.ts";
import { createHostChannels } from "../../keeper/handles/channels.ts";
import type { Reach } from "../../keeper/handles/reach.ts";
import type { Records } from "../../keeper/handles/records.ts";
import type { HostChannel } from "../../provider.ts";
import { farLogs } from "./far-logs.ts";
import { baseEnvironment, inside } from "./inside.ts";
import { lateChannel } from "./late-channel.ts";
import { createLinks } from "./links.ts";
import type { SandboxRecord } from "./record.ts";

/** Commands, files and ports go from each process straight through its own link. */
export function reachModal(
  keeper: KeeperClient,
  records: Records<SandboxRecord>,
  tunnelCa: string | undefined,
): Reach<SandboxRecord> {
  const links = createLinks({ tunnelCa, addressOf: async (id) => (await records.read(id)).run?.link ?? null });
  const ends = new EventEmitter().setMaxListeners(0);
  keeper.onEvent((event) => {
    if (event.type === "sandbox.destroyed") links.drop(event.sandbox);
    else if (event.type === "sandbox.state_changed") links.changed(event.sandbox);
    else return;
    if (event.type === "sandbox.destroyed" || event.to !== "running") ends.emit(event.sandbox);
  });
  const untilEnd = async (id: SandboxId, signal: AbortSignal) => {
    await once(ends, id, { signal }).catch(() => undefined);
  };
  keeper.onLost(() => links.allChanged());

  /** Waiting for a link is for one that is lost, not for one that is not there. */
  const linkOf = async (id: SandboxId) => {
    const record = await records.read(id);
    if (record.run === null) {
      throw new SlipwayError("sandbox_not_running", `${id} is ${record.state} (${record.reason}).`);
    }
    return links.get(record);
  };
  const openIn = async (id: SandboxId, signal: AbortSignal | undefined): Promise<HostChannel> => {
    const record = await records.read(id);
    if (record.run !== null) return await links.get(record).openChannel({ signal });
    return lateChannel(inside.channel, (until) => links.get(record).openChannel({ signal: until }));
  };
  const channels = createHostChannels({ keeper, exists: records.exists, openIn });
  return {
    toolsDirectory: inside.tools,
    environment: (record) => baseEnvironment(record.environment),
    dial: (id) => async (signal) => await (await linkOf(id)).dial(signal),
    logs: (id) =>
      farLogs({
        id,
        logs: async () => (await linkOf(id)).logs,
        untilEnd: (signal) => untilEnd(id, signal),
        check: () => records.read(id),
      }),
    watchExecs: () => (exec) => exec,
    openChannel: (id, signal) => channels.open(id, signal),
    async [Symbol.asyncDispose]() {
      await channels[Symbol.asyncDispose]();
      await links[Symbol.asyncDispose]();
    },
  };
}
