import { type ErrorCode, hasCode, type SandboxEvent, SlipwayError } from "@slipway/contract";
import type { EventOptions } from "../../provider.ts";
import { type KeeperMethod, type KeeperParams, type KeeperResult, protocolVersion } from "../protocol.ts";
import { type CallKeeper, type Connection, callOnce, keeperGone, openConnection } from "./connection.ts";
import type { KeeperStarter } from "./start.ts";

export interface KeeperClient extends AsyncDisposable {
  /** Makes sure that a keeper runs and has taken over the state directory. */
  connect(): Promise<void>;
  /** Starts a keeper when none runs. Repeats a call when the keeper ends before it answers. */
  call<M extends KeeperMethod>(method: M, params: KeeperParams<M>, options?: CallOptions<M>): Promise<KeeperResult<M>>;
  /** Every event from the first connection on, except those that a keeper's death loses. */
  onEvent(listener: (event: SandboxEvent) => void): () => void;
  /** The keeper is gone. Until the next call, no events of a new one arrive. */
  onLost(listener: () => void): void;
  /** Without gaps between keepers. */
  events(options: Omit<EventOptions, "sandbox">): AsyncIterable<SandboxEvent>;
}

interface CallOptions<M extends KeeperMethod> extends CallKeeper {
  readonly done?: DoneBefore<KeeperResult<M>>;
}

/** The error of a repeated call that a dead keeper had already done, and the result to return then. */
export interface DoneBefore<T> {
  readonly code: ErrorCode;
  result(): T;
}

const maxAttempts = 5;

export function createKeeperClient(starter: KeeperStarter): KeeperClient {
  const listeners = new Set<(event: SandboxEvent) => void>();
  const lostListeners = new Set<() => void>();
  let connection: Promise<Connection> | undefined;
  let nextCall = 1;
  const closing = new AbortController();

  const subscribed = async (): Promise<Connection> => {
    const opened = await openConnection(starter);
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
    if (closing.signal.aborted) throw new SlipwayError("provider_unavailable", "The provider has been closed.");
    connection ??= subscribed().catch((error) => {
      connection = undefined;
      throw error;
    });
    return connection;
  };

  const client: KeeperClient = {
    async connect() {
      // A connection outlives its keeper for a moment; only an answer proves that the keeper lives.
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
              `The keeper ended ${maxAttempts} times during ${method}. See ${starter.layout.keeperLog}.`,
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
        // A separate connection: a slow reader of events delays nothing else.
        yield* subscription(await openConnection(starter), reader, stop);
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      (await connection?.catch(() => undefined))?.socket.destroy();
    },
  };
  return client;
}

/** Most events to buffer for a slow reader; the keeper holds the rest. */
const mostEventsAhead = 1000;

interface EventReader {
  /** The last event that it got. */
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
