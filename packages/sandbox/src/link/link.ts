import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { throwIfAborted } from "../abort.ts";
import type { Dial } from "../agent/connection.ts";
import type { ExecLogs } from "../agent/exec/logs.ts";
import type { CallOptions, HostChannel } from "../provider.ts";
import { type Ask, type AskOptions, answerOf } from "./ask.ts";
import { openLinkChannel } from "./channel.ts";
import { keepConnected } from "./connection.ts";
import { enter, keyBytes, newHolder } from "./handshake.ts";
import { logsOver } from "./logs.ts";
import { asSocket, clientSession } from "./session.ts";

/** A connection to the link program of one sandbox. */
export interface Link extends AsyncDisposable {
  /** A connection to the agent. Waits, for a while, for a lost link to be back. */
  readonly dial: Dial;
  readonly logs: ExecLogs;
  /** Fails with `channel_in_use` while another connection has it. Lives as long as the link. */
  openChannel(options?: CallOptions): Promise<HostChannel>;
  /** Moves the dead-man's deadline: the program inside ends everything and exits then. */
  keepUntil(atMs: number, options?: CallOptions): Promise<void>;
  onState(listener: (state: "connected" | "lost") => void): void;
}

interface LinkOptions {
  /** Opens a raw byte stream to the link's port inside, for instance TLS to a tunnel. */
  readonly open: (signal: AbortSignal) => Promise<Duplex>;
  /** Of this sandbox. */
  readonly key: Buffer;
}

const statusSchema = z.object({ channel: z.string().startsWith("/") });

/** Reconnects by itself, for ever; a heartbeat finds dead connections. */
export function openLink({ open, key }: LinkOptions): Link {
  if (key.length !== keyBytes) throw new RangeError(`A link's key has ${keyBytes} bytes.`);
  const listeners = new Set<(state: "connected" | "lost") => void>();
  const holder = newHolder();
  const control = keepConnected({
    open,
    async start(stream) {
      await enter(stream, key, { role: "control", holder });
      return clientSession(stream, "control");
    },
    onState(state) {
      for (const listener of listeners) listener(state);
    },
  });
  const request = async (path: string, { method = "GET", signal, withinMs }: AskOptions) => {
    throwIfAborted(signal);
    const session = await control.ready(signal, withinMs);
    return asSocket(session.request({ ":method": method, ":path": path }, { endStream: false }));
  };
  const ask: Ask = async (path, options) => {
    const stream = await request(path, options);
    stream.end(options.body);
    return stream;
  };
  const channels = new Set<HostChannel>();
  return {
    async dial(signal) {
      const stream = await request("/agent", { method: "POST", signal });
      stream.allowHalfOpen = false;
      return stream;
    },
    logs: logsOver(ask),
    async openChannel({ signal } = {}) {
      const { channel: inside } = await answerOf(ask, "/status", statusSchema, { signal });
      const channel = await openLinkChannel({ open, key, inside, onClose: () => channels.delete(channel) }, signal);
      channels.add(channel);
      return channel;
    },
    async keepUntil(atMs, { signal } = {}) {
      if (!Number.isSafeInteger(atMs)) throw new SlipwayError("invalid_request", "atMs is no time in milliseconds.");
      // As a time from now: the sandbox's clock may be another.
      const forMs = Math.max(0, atMs - Date.now());
      await answerOf(ask, "/remaining", z.object({}), { method: "PUT", body: String(forMs), signal });
    },
    onState: (listener) => void listeners.add(listener),
    async [Symbol.asyncDispose]() {
      await Promise.all([...channels].map((channel) => channel[Symbol.asyncDispose]()));
      await control[Symbol.asyncDispose]();
    },
  };
}
