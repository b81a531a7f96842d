import { connect, type Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { abortedError, cutError } from "./errors.ts";
import { createFrameDecoder, encodeRequest, type Field, frameType } from "./wire.ts";

/** A new connection to the sandbox's agent. Whoever injects it may wake a sleeping sandbox first. */
export type Dial = () => Promise<Socket>;

export function dialAgent(socketPath: string): Dial {
  return () =>
    new Promise((resolve, reject) => {
      const socket = connect(socketPath);
      const fail = (cause: Error) =>
        reject(new SlipwayError("sandbox_not_running", "the sandbox does not answer", { cause }));
      socket.once("error", fail);
      socket.once("connect", () => {
        socket.off("error", fail);
        resolve(socket);
      });
    });
}

export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** One operation over one connection. */
export interface AgentCall {
  /** The next frame, or part of a stream; null at the end of the connection. */
  next(): Promise<Frame | null>;
  /** Resolves when more can be sent; rejects when the connection has ended. */
  send(data: Uint8Array): Promise<void>;
  close(): void;
}

/** Above this, frames that wait to be taken pause the connection. */
const fullBytes = 1024 * 1024;

export async function openCall(
  dial: Dial,
  operation: string,
  fields: readonly Field[],
  signal?: AbortSignal,
): Promise<AgentCall> {
  if (signal?.aborted) throw abortedError(signal);
  const request = encodeRequest(operation, fields);
  const socket = await dial();
  if (signal?.aborted) {
    socket.destroy();
    throw abortedError(signal);
  }
  socket.write(request);
  return createCall(socket, signal);
}

function createCall(socket: Socket, signal: AbortSignal | undefined): AgentCall {
  const queue: Frame[] = [];
  let queuedBytes = 0;
  let ended = false;
  let failure: Error | null = null;
  let wake: (() => void) | null = null;
  const notify = () => {
    wake?.();
    wake = null;
  };
  const add = (type: number, payload: Buffer) => {
    queue.push({ type, payload });
    queuedBytes += payload.length;
  };
  const decoder = createFrameDecoder({ stream: add, frame: add });
  const fail = (error: Error) => {
    failure ??= error;
    socket.destroy();
  };
  const onAbort = () => fail(abortedError(signal as AbortSignal));
  signal?.addEventListener("abort", onAbort, { once: true });
  socket.on("data", (chunk: Buffer) => {
    try {
      decoder.push(chunk);
    } catch (error) {
      fail(error as Error);
    }
    if (queuedBytes >= fullBytes) socket.pause();
    notify();
  });
  // A broken connection is one that ended early; `close` follows.
  socket.on("error", () => {});
  socket.on("close", () => {
    signal?.removeEventListener("abort", onAbort);
    ended = true;
    notify();
  });
  return {
    async next() {
      for (;;) {
        if (failure !== null) throw failure;
        const frame = queue.shift();
        if (frame !== undefined) {
          queuedBytes -= frame.payload.length;
          if (queuedBytes < fullBytes && socket.isPaused()) socket.resume();
          return frame;
        }
        if (ended) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async send(data) {
      if (failure !== null) throw failure;
      if (ended || socket.destroyed) throw cutError("all was sent");
      if (!socket.write(data)) await drained(socket);
      if (failure !== null) throw failure;
    },
    close() {
      signal?.removeEventListener("abort", onAbort);
      socket.destroy();
    },
  };
}

/** Resolves when the socket takes more, or has closed. */
export function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
  });
}

/** Waits for the `K` of an operation, or throws what `failed` makes of its `F`. */
export async function expectDone(call: AgentCall, failed: (payload: Buffer) => Error): Promise<Buffer> {
  const frame = await call.next();
  if (frame === null) throw cutError("it answered");
  if (frame.type === frameType.failed) throw failed(frame.payload);
  if (frame.type !== frameType.done) throw new SlipwayError("internal", `the agent answered with frame ${frame.type}`);
  return frame.payload;
}
