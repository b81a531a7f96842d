import type { Duplex } from "node:stream";
import { hasCode, type SandboxId, SlipwayError } from "@slipway/contract";
import type { Dial } from "../../agent/connection.ts";
import type { KeeperClient } from "../client/client.ts";
import type { SandboxRecord } from "../record.ts";

export interface Wakefulness {
  /** A connection to the sandbox's agent. Wakes a sandbox that sleeps, or that falls asleep before it answers. */
  dial(id: SandboxId, dial: Dial, record: () => Promise<SandboxRecord>, signal?: AbortSignal): Promise<Duplex>;
}

/** The keeper freezes a sandbox much sooner than this after it saw it idle. */
const newCallMs = 1000;

export function watchSleep(keeper: KeeperClient): Wakefulness {
  const asleep = new Map<SandboxId, boolean>();
  const open = new Map<SandboxId, Map<Duplex, number>>();
  const wake = (id: SandboxId) => keeper.call("wake", { id });
  keeper.onLost(() => asleep.clear());
  keeper.onEvent((event) => {
    if (event.type === "sandbox.destroyed") asleep.delete(event.sandbox);
    if (event.type !== "sandbox.state_changed") return;
    asleep.set(event.sandbox, event.to === "sleeping");
    if (event.to !== "sleeping") return;
    // A call was on its way or had just begun: a use that the keeper could not see yet.
    for (const [socket, since] of open.get(event.sandbox) ?? []) {
      // By the time of the event, not of its arrival here.
      const isNew = event.reason === "idle" && event.at - since < newCallMs;
      if (isNew || hasNoAnswer(socket)) return void wake(event.sandbox).catch(() => undefined);
    }
  });
  return {
    async dial(id, dial, record, signal) {
      if (!asleep.has(id)) {
        const { state } = await record();
        // An event that came meanwhile is newer.
        if (!asleep.has(id)) asleep.set(id, state === "sleeping");
      }
      if (asleep.get(id)) await wake(id);
      const socket = await dial(signal).catch(async (cause) => {
        if (hasCode(cause, "aborted")) throw cause;
        const { state, reason } = await record();
        if (state === "sleeping") {
          await wake(id);
          return await dial(signal);
        }
        if (state === "running" && hasCode(cause, "provider_unavailable")) throw cause;
        const code = reason === "requested" ? "sandbox_not_running" : "sandbox_ended";
        throw new SlipwayError(code, `${id} is ${state} (${reason}).`, { cause });
      });
      const calls = open.get(id) ?? new Map<Duplex, number>();
      open.set(id, calls.set(socket, Date.now()));
      socket.once("close", () => {
        calls.delete(socket);
        if (calls.size === 0) open.delete(id);
      });
      return socket;
    },
  };
}

/** Only a socket of this machine tells. */
function hasNoAnswer(connection: Duplex & { readonly bytesRead?: number }): boolean {
  return connection.bytesRead === 0;
}
