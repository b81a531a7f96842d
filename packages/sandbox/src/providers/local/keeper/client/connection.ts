import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type ErrorBody, isErrorCode, type SandboxEvent, SlipwayError } from "@slipway/contract";
import { type Layout, prepareStateDirectory } from "../../layout.ts";
import {
  type KeeperMessage,
  type KeeperMethod,
  type KeeperParams,
  type KeeperResult,
  type KeeperStart,
  onLines,
  protocolVersion,
  sendLine,
} from "../protocol.ts";
import type { KeeperSettings } from "../settings.ts";

/** One connection to a keeper of this version. */
export interface Connection {
  readonly socket: Socket;
  readonly pending: Map<number, Pending>;
  readonly listeners: Set<(event: SandboxEvent) => void>;
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress: ((line: string) => void) | undefined;
}

export interface CallKeeper {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** What calls fail with whose keeper ended before it answered. */
export const keeperGone = Symbol("keeper gone");
const startLimitMs = 60_000;
const retryMs = 20;

/** Starts a keeper when none runs. */
export async function openConnection(layout: Layout, settings: KeeperSettings): Promise<Connection> {
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

/** `call`: a number that no other call on the connection has. */
export function callOnce<M extends KeeperMethod>(
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

/** Compiled code that others could write would run with this user's rights, and Node makes the directory as the umask is. */
function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
}

/** Answers null when another keeper was quicker, or this one did not come up. */
async function startKeeper(layout: Layout, settings: KeeperSettings): Promise<Socket | null> {
  const log = openSync(layout.keeperLog, "a", 0o600);
  makePrivate(layout.compileCache);
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const words = [main, settings.stateDir, String(settings.sandboxUid), String(settings.minFreeBytes)];
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...words], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", "pipe", log],
    // Most of a start is reading the sources.
    env: { NODE_COMPILE_CACHE: layout.compileCache, ...settings.environment },
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
