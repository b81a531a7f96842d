import { createServer, type Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { listenAt } from "../unix-socket.ts";
import type { EventLog } from "./events/log.ts";
import { streamEvents } from "./events/stream.ts";
import {
  type KeeperMethod,
  type KeeperParams,
  type KeeperRequest,
  type KeeperResult,
  onLines,
  sendLine,
} from "./protocol.ts";

export interface CallContext {
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

export type Handlers = {
  [M in Exclude<KeeperMethod, "subscribe">]: (
    params: KeeperParams<M>,
    context: CallContext,
  ) => Promise<KeeperResult<M>> | KeeperResult<M>;
};

export interface KeeperServer {
  readonly connections: number;
  close(): Promise<void>;
}

/** The caller makes sure that no other keeper serves the socket. */
export async function serveKeeper(
  path: string,
  handlers: Handlers,
  events: EventLog,
  hooks: { onIdle(): void; onDefect(method: string, error: unknown): void },
): Promise<KeeperServer> {
  const sockets = new Set<Socket>();
  /** A caller that disconnects cancels nothing; only an explicit cancel does. */
  const answer = async (
    socket: Socket,
    calls: Map<number, AbortController>,
    { call, params }: { call: number; params: unknown },
    method: keyof Handlers,
  ): Promise<void> => {
    const controller = new AbortController();
    calls.set(call, controller);
    try {
      const handler = handlers[method] as (
        params: unknown,
        context: CallContext,
      ) => Promise<KeeperResult<KeeperMethod>>;
      const progress = (line: string) => sendLine(socket, { call, progress: line });
      sendLine(socket, { call, result: await handler(params, { signal: controller.signal, progress }) });
    } catch (error) {
      const told = errorOf(error);
      if (told !== error && told.code === "internal") hooks.onDefect(method, error);
      sendLine(socket, { call, error: told.toJSON() });
    } finally {
      calls.delete(call);
    }
  };
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
      void answer(socket, calls, request, request.method);
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

function isFullDisk(error: unknown): error is Error {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

function errorOf(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  if (isFullDisk(error)) return new SlipwayError("out_of_disk", `The keeper's disk is full: ${error.message}`);
  const words = error instanceof Error ? error.message : String(error);
  return new SlipwayError("internal", `The keeper failed: ${words}`);
}
