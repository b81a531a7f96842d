import { type ErrorCode, hasCode, type SandboxEvent, SlipwayError } from "@slipway/contract";
import type { EventOptions } from "../../../../provider.ts";
import type { Layout } from "../../layout.ts";
import { type KeeperMethod, type KeeperParams, type KeeperResult, protocolVersion } from "../protocol.ts";
import type { KeeperSettings } from "../settings.ts";
import { type CallKeeper, type Connection, callOnce, keeperGone, openConnection } from "./connection.ts";

export interface KeeperClient extends AsyncDisposable {
  /** Makes sure that a keeper runs, and has taken over what it found. */
  connect(): Promise<void>;
  /** Starts a keeper when none runs; sends a call again when the keeper went away before it answered. */
  call<M extends KeeperMethod>(method: M, params: KeeperParams<M>, options?: CallOptions<M>): Promise<KeeperResult<M>>;
  /** Every event from the first connection on; one that a keeper's death swallowed is not told. */
  onEvent(listener: (event: SandboxEvent) => void): () => void;
  /** The keeper is gone: until the next call, nothing is told of what a new one does. */
  onLost(listener: () => void): void;
  /** Without a gap over keepers. */
  events(options: Omit<EventOptions, "sandbox">): AsyncIterable<SandboxEvent>;
}

interface CallOptions<M extends KeeperMethod> extends CallKeeper {
  readonly done?: DoneBefore<KeeperResult<M>>;
}

/** How a call that is sent again fails when a keeper had done it and died before it answered, and what that answer is. */
export interface DoneBefore<T> {
  readonly code: ErrorCode;
  result(): T;
}

const maxAttempts = 5;

export function createKeeperClient(layout: Layout, settings: KeeperSettings): KeeperClient {
  const listeners = new Set<(event: SandboxEvent) => void>();
  const lostListeners = new Set<() => void>();
  let connection: Promise<Connection> | undefined;
  let nextCall = 1;
  const closing = new AbortController();

  const subscribed = async (): Promise<Connection> => {
    const opened = await openConnection(layout, settings);
    opened.listeners.add((event) => {
      for (const listener of listeners) listener(event);
    });
    await callOnce(opened, 0, "subscribe", { after: null }, {});
    opened.socket.once("close", () => {
      connection = undefined;
      for (const listener of lostListeners) listener();
    });
    return opened;
  };
  const connected = (): Promise<Connection> => {
    if (closing.signal.aborted) throw new SlipwayError("provider_unavailable", "the provider has been closed");
    connection ??= subscribed().catch((error) => {
      connection = undefined;
      throw error;
    });
    return connection;
  };

  const client: KeeperClient = {
    async connect() {
      // A connection may look alive for a moment after its keeper has died; an answer proves it.
      await client.call("hello", { version: protocolVersion });
    },
    async call(method, params, options = {}) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await callOnce(await connected(), nextCall++, method, params, options);
        } catch (error) {
          const { done } = options;
          if (attempt > 1 && done !== undefined && hasCode(error, done.code)) return done.result();
          if (error !== keeperGone) throw error;
          if (attempt === maxAttempts) {
            throw new SlipwayError(
              "provider_unavailable",
              `the keeper ended ${maxAttempts} times during ${method}; see ${layout.keeperLog}`,
            );
          }
        }
      }
    },
    onEvent(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onLost(listener) {
      lostListeners.add(listener);
    },
    async *events({ after = 0, follow = true, signal }) {
      const stop = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
      const reader = { at: after, follow, isDone: false };
      while (!stop.aborted && !reader.isDone) {
        // A connection of its own: a slow reader of events holds up nothing else.
        yield* subscription(await openConnection(layout, settings), reader, stop);
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      (await connection?.catch(() => undefined))?.socket.destroy();
    },
  };
  return client;
}

/** Events that were read ahead of a slow reader; then the keeper keeps the rest. */
const mostEventsAhead = 1000;

interface EventReader {
  /** The last one that it was given. */
  at: number;
  readonly follow: boolean;
  isDone: boolean;
}

/** Ends when the reader is done, or when the signal or the keeper ends. */
async function* subscription(
  { socket, pending, listeners }: Connection,
  reader: EventReader,
  signal: AbortSignal,
): AsyncIterable<SandboxEvent> {
  const queue: SandboxEvent[] = [];
  let wake = () => {};
  listeners.add((event) => {
    if (queue.push(event) >= mostEventsAhead) socket.pause();
    wake();
  });
  const end = () => socket.destroy();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  socket.once("close", () => wake());
  try {
    const { last } = await callOnce({ socket, pending }, -4, "subscribe", { after: reader.at }, {});
    socket.ref();
    while (!signal.aborted) {
      reader.isDone = !reader.follow && reader.at >= last;
      if (reader.isDone) return;
      const event = queue.shift();
      if (queue.length === 0) socket.resume();
      if (event !== undefined) {
        reader.at = event.sequence;
        yield event;
      } else if (socket.destroyed) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } catch (error) {
    if (error !== keeperGone) throw error;
  } finally {
    signal.removeEventListener("abort", end);
    socket.destroy();
  }
}
