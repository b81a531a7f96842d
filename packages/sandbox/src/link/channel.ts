import { constants, type ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { hasCode } from "@slipway/contract";
import { createConnectionQueue } from "../connection-queue.ts";
import type { HostChannel } from "../provider.ts";
import { keepConnected } from "./connection.ts";
import { enter, newHolder } from "./handshake.ts";
import { asSocket, farewell, serverSession } from "./session.ts";

export interface ChannelOptions {
  readonly open: (signal: AbortSignal) => Promise<Duplex>;
  readonly key: Buffer;
  /** Path of the unix socket inside. */
  readonly inside: string;
  readonly onClose: () => void;
}

const closingMs = 5000;

/** A connection of its own, on which the program inside opens a stream for each connection to its socket. */
export async function openLinkChannel(options: ChannelOptions, signal: AbortSignal | undefined): Promise<HostChannel> {
  const { open, key, inside, onClose } = options;
  const queue = createConnectionQueue();
  const holder = newHolder();
  const refused = Promise.withResolvers<never>();
  let session: ServerHttp2Session | null = null;
  const connection = keepConnected({
    open,
    async start(stream) {
      await enter(stream, key, { role: "channel", holder });
      session = serverSession(stream, "channel");
      session.on("stream", (incoming) => {
        incoming.respond({ ":status": constants.HTTP_STATUS_OK });
        queue.push(asSocket(incoming));
      });
      return session;
    },
    onFailure(error) {
      // Later, once it was ours, another may have it for a while.
      if (hasCode(error, "channel_in_use")) refused.reject(error);
    },
  });
  try {
    await Promise.race([connection.ready(signal), refused.promise]);
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
  let closed: Promise<void> | undefined;
  const close = async () => {
    queue.close();
    if (session !== null && connection.isConnected) await takeLeave(session);
    await connection[Symbol.asyncDispose]();
    onClose();
  };
  return {
    inside,
    connections: (callOptions = {}) => queue.take(callOptions.signal),
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

/** Programs inside can no longer dial when the other end has closed. */
async function takeLeave(session: ServerHttp2Session): Promise<void> {
  if (session.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, closingMs);
  session.once("close", () => resolve());
  session.ping(farewell, () => undefined);
  await promise;
  clearTimeout(timer);
}
