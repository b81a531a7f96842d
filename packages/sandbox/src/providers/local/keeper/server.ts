import { createServer, type Socket } from "node:net";
import { type ErrorBody, SlipwayError } from "@slipway/contract";
import { listenAt } from "../unix-socket.ts";
import type { EventLog } from "./events/log.ts";
import { streamEvents } from "./events/stream.ts";
import {
  type KeeperMethod,
  type KeeperMethods,
  type KeeperParams,
  type KeeperRequest,
  type KeeperResult,
  onLines,
  sendLine,
} from "./protocol.ts";

export type Handlers = {
  [M in Exclude<KeeperMethod, "subscribe">]: (
    params: KeeperParams<M>,
    context: { signal: AbortSignal; progress: (line: string) => void },
  ) => Promise<KeeperResult<M>> | KeeperResult<M>;
};

export interface KeeperServer {
  readonly connections: number;
  close(): Promise<void>;
}

/** Serves the keeper's methods on its socket. The caller makes sure that no other keeper does. */
export async function serveKeeper(
  path: string,
  handlers: Handlers,
  events: EventLog,
  hooks: { onIdle(): void; onDefect(method: string, error: unknown): void },
): Promise<KeeperServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const calls = new Map<number, AbortController>();
    let unsubscribe = () => {};
    onLines<KeeperRequest>(socket, (request) => {
      if ("cancel" in request) return calls.get(request.cancel)?.abort();
      if (request.method === "subscribe") {
        const { after } = request.params as KeeperParams<"subscribe">;
        const { last } = events;
        const result: KeeperResult<"subscribe"> = { last };
        sendLine(socket, { call: request.call, result });
        unsubscribe();
        unsubscribe = streamEvents(events, after ?? last, {
          send: (event) => sendLine(socket, { event }),
          onceDrained: (callback) => void socket.once("drain", callback),
        });
        return;
      }
      void answer(socket, request.call, request.method, request.params, calls, handlers, hooks.onDefect);
    });
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      sockets.delete(socket);
      unsubscribe();
      if (sockets.size === 0) hooks.onIdle();
    });
  });
  // Whoever can write to the socket controls the sandboxes.
  await listenAt(server, path, 0o600);
  return {
    get connections() {
      return sockets.size;
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A caller that goes away cancels nothing; one that says so does. */
async function answer(
  socket: Socket,
  call: number,
  method: keyof Handlers,
  params: unknown,
  calls: Map<number, AbortController>,
  handlers: Handlers,
  onDefect: (method: string, error: unknown) => void,
): Promise<void> {
  const controller = new AbortController();
  calls.set(call, controller);
  try {
    const handler = handlers[method] as (
      params: unknown,
      context: object,
    ) => Promise<ReturnType<KeeperMethods[KeeperMethod]>>;
    const progress = (line: string) => sendLine(socket, { call, progress: line });
    sendLine(socket, { call, result: await handler(params, { signal: controller.signal, progress }) });
  } catch (error) {
    const told = isFullDisk(error)
      ? new SlipwayError("out_of_disk", `the keeper's disk is full: ${error.message}`)
      : error;
    if (!(told instanceof SlipwayError)) onDefect(method, told);
    sendLine(socket, { call, error: errorBody(told) });
  } finally {
    calls.delete(call);
  }
}

function isFullDisk(error: unknown): error is Error {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

function errorBody(error: unknown): ErrorBody {
  if (error instanceof SlipwayError) return error.toJSON();
  return new SlipwayError(
    "internal",
    `the keeper failed: ${error instanceof Error ? error.message : String(error)}`,
  ).toJSON();
}
