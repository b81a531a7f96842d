import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import { abortable, abortedError, throwIfAborted } from "../abort.ts";
import { connectSocket } from "../unix-socket.ts";
import { cutError, fileError } from "./errors.ts";
import { encodeRequest, type Fields, FrameDecoder, frameType } from "./wire.ts";

/**
 * Opens a connection to the sandbox's agent. An implementation may wake a sleeping sandbox first. The connection ends its
 * own direction when the agent has ended, unless its `allowHalfOpen` is set.
 */
export type Dial<Connection extends Duplex = Duplex> = (signal?: AbortSignal) => Promise<Connection>;

export function dialAgent(socketPath: string): Dial<Socket> {
  return () =>
    connectSocket(socketPath).catch((cause) => {
      throw new SlipwayError("sandbox_not_running", "The sandbox does not answer.", { cause });
    });
}

/** Dials, unless the caller aborts before or meanwhile. */
export async function dialUnlessAborted(dial: Dial, signal: AbortSignal | undefined): Promise<Duplex> {
  throwIfAborted(signal);
  const socket = await dial(signal);
  if (!signal?.aborted) return socket;
  socket.destroy();
  throw abortedError(signal);
}

export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** One operation over one connection. Disposing of it closes the connection. */
export interface AgentCall extends Disposable {
  /** The next frame, or part of a stream; null at the end of the connection. */
  next(): Promise<Frame | null>;
  /** Resolves when more can be sent; rejects when the connection has ended. */
  send(data: Uint8Array): Promise<void>;
}

/** Above this, queued frames pause the connection. */
const fullBytes = 1024 * 1024;
/** What a frame costs besides its content. */
const frameBytes = 128;

export async function openCall(
  dial: Dial,
  operation: string,
  fields: Fields,
  signal?: AbortSignal,
): Promise<AgentCall> {
  throwIfAborted(signal);
  const request = encodeRequest(operation, fields);
  const socket = await dialUnlessAborted(dial, signal);
  socket.write(request);
  return createCall(socket, signal);
}

function createCall(socket: Duplex, signal: AbortSignal | undefined): AgentCall {
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
    queuedBytes += frameBytes + payload.length;
  };
  const decoder = new FrameDecoder({ stream: add, frame: add });
  const fail = (error: Error) => {
    failure ??= error;
    socket.destroy();
  };
  const onAbort = () => fail(abortedError(signal));
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
  // `close` follows and tells the reader.
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
          queuedBytes -= frameBytes + frame.payload.length;
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
      if (ended || socket.destroyed) throw cutError("everything was sent");
      if (!socket.write(data)) await drained(socket);
      if (failure !== null) throw failure;
    },
    [Symbol.dispose]() {
      signal?.removeEventListener("abort", onAbort);
      socket.destroy();
    },
  };
}

/** Resolves when the socket takes more, or has closed. */
export function drained(socket: Duplex, signal?: AbortSignal): Promise<void> {
  return abortable(signal, ({ resolve }) => {
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
    return () => socket.off("drain", done).off("close", done);
  });
}

/** The next frame. Throws on a failure or an early end. */
export async function nextFrame(call: AgentCall, subject: string): Promise<Frame> {
  const frame = await call.next();
  if (frame === null) throw cutError("the operation was done");
  if (frame.type === frameType.failed) throw fileError(frame.payload, subject);
  return frame;
}

/** The payload of the `K` that completes an operation. */
export async function expectDone(call: AgentCall, subject: string): Promise<Buffer> {
  const { type, payload } = await nextFrame(call, subject);
  if (type !== frameType.done) throw new SlipwayError("internal", `Unexpected frame ${type} from the agent.`);
  return payload;
}
