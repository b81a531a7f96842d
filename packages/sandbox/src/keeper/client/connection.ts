import { spawn } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type ErrorBody, isErrorCode, type SandboxEvent, SlipwayError } from "@slipway/contract";
import { abortable, type Waiter } from "../../abort.ts";
import { connectSocket } from "../../unix-socket.ts";
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
import type { KeeperStarter } from "./start.ts";

/** One connection to a keeper of this version. */
export interface Connection {
  readonly socket: Socket;
  readonly pending: Map<number, Pending>;
  readonly listeners: Set<(event: SandboxEvent) => void>;
}

interface Pending extends Waiter<unknown> {
  readonly onProgress: ((line: string) => void) | undefined;
}

export interface CallKeeper {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** Thrown when the keeper ends before it answers. */
export const keeperGone = Symbol("keeper gone");
const startLimitMs = 60_000;
const retryMs = 20;

/** Starts a keeper when none runs. */
export async function openConnection(starter: KeeperStarter): Promise<Connection> {
  const { layout } = starter;
  starter.prepare();
  const deadline = performance.now() + startLimitMs;
  do {
    const socket = (await dial(layout.keeperSocket)) ?? (await startKeeper(starter));
    const opened = socket === null ? null : await greet(listen(socket));
    if (opened !== null) return opened;
    // Another keeper is starting or ending.
    await delay(retryMs);
  } while (performance.now() < deadline);
  throw new SlipwayError(
    "provider_unavailable",
    `The keeper of ${layout.root} does not stay up. See ${layout.keeperLog}.`,
  );
}

/** @param call a number that no other call on the connection has */
export function callOnce<M extends KeeperMethod>(
  { socket, pending }: Pick<Connection, "socket" | "pending">,
  call: number,
  method: M,
  params: KeeperParams<M>,
  { signal, onProgress }: CallKeeper,
): Promise<KeeperResult<M>> {
  return abortable(signal, ({ resolve, reject }) => {
    socket.ref();
    pending.set(call, { onProgress, resolve: (result) => resolve(result as KeeperResult<M>), reject });
    sendLine(socket, { call, method, params });
    return () => {
      pending.delete(call);
      sendLine(socket, { cancel: call });
      if (pending.size === 0) socket.unref();
    };
  });
}

/** Asks a keeper of another version to retire. The sandboxes stay. */
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

/** An idle connection does not keep the process alive. */
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

/** No keeper, one that is ending, or one whose queue of connections is full. */
const nobodyThere: readonly string[] = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "EAGAIN"];

async function dial(path: string): Promise<Socket | null> {
  try {
    return await connectSocket(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && nobodyThere.includes(code)) return null;
    throw new SlipwayError("provider_unavailable", `Cannot reach the keeper at ${path}: ${code}`, { cause: error });
  }
}

/** Node makes the directory as the umask says. Compiled code that others can write would run with this user's rights. */
function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
}

/** Null when another keeper was quicker, or this one did not come up. */
async function startKeeper({ layout, main, words, environment }: KeeperStarter): Promise<Socket | null> {
  const log = openSync(layout.keeperLog, "a", 0o600);
  makePrivate(layout.compileCache);
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", main, ...words], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", "pipe", log],
    // Compiling the sources takes most of a start.
    env: { NODE_COMPILE_CACHE: layout.compileCache, ...environment },
  });
  closeSync(log);
  // Its standard output stays empty; the caller reports that no keeper stays up.
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
