import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type ErrorBody,
  type ErrorCode,
  hasCode,
  isErrorCode,
  type SandboxEvent,
  SlipwayError,
} from "@slipway/contract";
import {
  type KeeperMessage,
  type KeeperMethod,
  type KeeperParams,
  type KeeperResult,
  type KeeperStart,
  onLines,
  protocolVersion,
  sendLine,
} from "./keeper/protocol.ts";
import type { KeeperSettings } from "./keeper/settings.ts";
import { type Layout, prepareStateDirectory } from "./layout.ts";

export interface KeeperClient extends AsyncDisposable {
  /** Makes sure that a keeper runs, and has taken over what it found. */
  connect(): Promise<void>;
  /** Starts a keeper when none runs; sends a call again when the keeper went away before it answered. */
  call<M extends KeeperMethod>(method: M, params: KeeperParams<M>, options?: CallOptions<M>): Promise<KeeperResult<M>>;
  /** Every event from the first connection on; one that a keeper's death swallowed is not told. */
  onEvent(listener: (event: SandboxEvent) => void): () => void;
  /** The keeper is gone: until the next call, nothing is told of what a new one does. */
  onLost(listener: () => void): void;
  /** Events after a sequence number (null: from now on), without a gap over keepers. */
  events(after: number | null, signal?: AbortSignal): AsyncIterable<SandboxEvent>;
}

interface CallKeeper {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((line: string) => void) | undefined;
}

interface CallOptions<M extends KeeperMethod> extends CallKeeper {
  readonly done?: DoneBefore<KeeperResult<M>>;
}

/** How a call that is sent again fails when a keeper had done it and died before it answered, and what that answer is. */
export interface DoneBefore<T> {
  readonly code: ErrorCode;
  result(): T;
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress: ((line: string) => void) | undefined;
}

interface Connection {
  readonly socket: Socket;
  readonly pending: Map<number, Pending>;
  readonly listeners: Set<(event: SandboxEvent) => void>;
}

const keeperGone = Symbol("keeper gone");
const maxAttempts = 5;
const startLimitMs = 20_000;
const retryMs = 20;

export function createKeeperClient(layout: Layout, settings: KeeperSettings): KeeperClient {
  const listeners = new Set<(event: SandboxEvent) => void>();
  const lostListeners = new Set<() => void>();
  let connection: Promise<Connection> | undefined;
  let nextCall = 1;
  const closing = new AbortController();

  const subscribed = async (): Promise<Connection> => {
    const opened = await open(layout, settings);
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
    async *events(after, signal) {
      const stop = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
      let last = after;
      while (!stop.aborted) {
        // A connection of its own: a slow reader of events holds up nothing else.
        const own = await open(layout, settings);
        for await (const event of subscription(own, last, stop)) {
          last = event.sequence;
          yield event;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      (await connection?.catch(() => undefined))?.socket.destroy();
    },
  };
  return client;
}

function callOnce<M extends KeeperMethod>(
  { socket, pending }: Pick<Connection, "socket" | "pending">,
  call: number,
  method: M,
  params: KeeperParams<M>,
  { signal, onProgress }: CallKeeper,
): Promise<KeeperResult<M>> {
  if (signal?.aborted) return Promise.reject(aborted(signal));
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      pending.delete(call);
      sendLine(socket, { cancel: call });
      if (pending.size === 0) socket.unref();
      reject(aborted(signal));
    };
    const settle = () => signal?.removeEventListener("abort", onAbort);
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.ref();
    pending.set(call, {
      onProgress,
      resolve: (result) => {
        settle();
        resolve(result as KeeperResult<M>);
      },
      reject: (error) => {
        settle();
        reject(error);
      },
    });
    sendLine(socket, { call, method, params });
  });
}

function aborted(signal: AbortSignal | undefined): SlipwayError {
  return new SlipwayError("aborted", "the call was aborted", { cause: signal?.reason });
}

/** Events that were read ahead of a slow reader; then the keeper keeps the rest. */
const mostEventsAhead = 1000;

/** Ends when the signal or the keeper does. */
async function* subscription(
  { socket, pending, listeners }: Connection,
  after: number | null,
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
    await callOnce({ socket, pending }, -4, "subscribe", { after }, {});
    socket.ref();
    while (!signal.aborted) {
      const event = queue.shift();
      if (queue.length === 0) socket.resume();
      if (event !== undefined) yield event;
      else if (socket.destroyed) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } catch (error) {
    if (error !== keeperGone) throw error;
  } finally {
    signal.removeEventListener("abort", end);
    socket.destroy();
  }
}

async function open(layout: Layout, settings: KeeperSettings): Promise<Connection> {
  prepareStateDirectory(layout, settings.sandboxUid);
  const deadline = performance.now() + startLimitMs;
  do {
    const socket = (await dial(layout.keeperSocket)) ?? (await startKeeper(layout, settings));
    const opened = socket === null ? null : await greet(listen(socket));
    if (opened !== null) return opened;
    // Another keeper is on its way up or down.
    await delay(retryMs);
  } while (performance.now() < deadline);
  throw new SlipwayError(
    "provider_unavailable",
    `the keeper of ${layout.root} does not stay up; see ${layout.keeperLog}`,
  );
}

/** A keeper of another version makes way for one of ours; the sandboxes stay. */
async function greet(connection: Connection): Promise<Connection | null> {
  try {
    const { version } = await callOnce(connection, -1, "hello", { version: protocolVersion }, {});
    if (version === protocolVersion) return connection;
    await callOnce(connection, -2, "retire", {}, {});
  } catch (error) {
    if (error !== keeperGone) throw error;
  }
  connection.socket.destroy();
  return null;
}

/** An idle connection does not keep the caller's process alive. */
function listen(socket: Socket): Connection {
  const pending = new Map<number, Pending>();
  const listeners: Connection["listeners"] = new Set();
  onLines<KeeperMessage>(socket, (message) => {
    if ("event" in message) {
      for (const listener of listeners) listener(message.event);
      return;
    }
    const waiting = pending.get(message.call);
    if (waiting === undefined) return;
    if ("progress" in message) return waiting.onProgress?.(message.progress);
    pending.delete(message.call);
    if (pending.size === 0) socket.unref();
    if ("error" in message) waiting.reject(errorOf(message.error));
    else waiting.resolve(message.result);
  });
  socket.once("close", () => {
    for (const waiting of pending.values()) waiting.reject(keeperGone);
    pending.clear();
  });
  socket.on("error", () => socket.destroy());
  return { socket, pending, listeners };
}

function errorOf({ code, message }: ErrorBody): SlipwayError {
  return new SlipwayError(isErrorCode(code) ? code : "internal", message);
}

/** No keeper, one that is going, or one that has more callers at the door than fit. */
const nobodyThere: readonly string[] = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "EAGAIN"];

async function dial(path: string): Promise<Socket | null> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return socket;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && nobodyThere.includes(code)) return null;
    throw new SlipwayError("provider_unavailable", `can not reach the keeper at ${path}: ${code}`, { cause: error });
  }
}

/** Answers null when another keeper was quicker, or this one did not come up. */
async function startKeeper(layout: Layout, settings: KeeperSettings): Promise<Socket | null> {
  const log = openSync(layout.keeperLog, "a", 0o600);
  const main = fileURLToPath(new URL("keeper/main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, JSON.stringify(settings)], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", "pipe", log],
    // Most of a start is reading the sources.
    env: { ...settings.environment, NODE_COMPILE_CACHE: layout.compileCache },
  });
  closeSync(log);
  // One that can not be started says nothing; that it does not stay up is told.
  child.on("error", () => undefined);
  child.unref();
  let said = "";
  for await (const chunk of child.stdout ?? []) {
    said += chunk;
    if (said.endsWith("\n")) break;
  }
  const answer = said === "" ? null : (JSON.parse(said) as KeeperStart);
  if (answer !== null && "error" in answer) throw errorOf(answer.error);
  return await dial(layout.keeperSocket);
}
