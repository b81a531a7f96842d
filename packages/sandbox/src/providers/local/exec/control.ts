import type { Socket } from "node:net";
import { type ExecId, hasCode, SlipwayError } from "@slipway/contract";
import { type Dial, drained, expectDone, openCall } from "../agent/connection.ts";
import { abortedError, cutError, decodeFailure, fileError } from "../agent/errors.ts";
import { encodeFrame, encodeHeader, encodeRequest, frameType, streamFrameBytes } from "../agent/wire.ts";

/** Sends one control frame over a connection of its own, so that it waits behind no standard input, and awaits its answer. */
export async function control(dial: Dial, id: ExecId, frame: Buffer, signal?: AbortSignal): Promise<void> {
  const call = await openCall(dial, "C", [["i", id]], signal);
  try {
    await call.send(frame);
    await expectDone(call, (payload) => fileError(decodeFailure(payload), id));
  } catch (error) {
    // The handler ended while the connection was on its way to it.
    if (hasCode(error, "provider_unavailable"))
      throw new SlipwayError("exec_ended", `${id} has ended`, { cause: error });
    throw error;
  } finally {
    call.close();
  }
}

/** An exec's standard input, over the connection that started it or, without one, over a control connection. */
export interface ExecInput {
  write(data: Uint8Array | string, signal?: AbortSignal): Promise<void>;
  end(signal?: AbortSignal): Promise<void>;
  release(): void;
}

export function createExecInput(dial: Dial, id: ExecId, live: () => Socket | null): ExecInput {
  let own: Socket | null = null;
  let last: Promise<void> | null = null;

  const connection = async (): Promise<Socket> => {
    const current = live();
    if (current !== null) return current;
    if (own === null || own.destroyed) {
      own = await dial();
      // What comes back is a refusal, which ends in the close that writers see.
      own.on("error", () => {}).resume();
      own.write(encodeRequest("C", [["i", id]]));
    }
    return own;
  };
  const sendAll = async (frames: readonly Buffer[], signal: AbortSignal | undefined): Promise<void> => {
    for (const frame of frames) {
      if (signal?.aborted) throw abortedError(signal);
      const socket = await connection();
      if (socket.destroyed) throw cutError("standard input was taken");
      if (!socket.write(frame)) await abortableDrain(socket, signal);
    }
  };
  /** Calls go in order: each waits for the one before. */
  const enqueue = (frames: readonly Buffer[], signal: AbortSignal | undefined): Promise<void> => {
    const before = last;
    const mine = before === null ? sendAll(frames, signal) : before.catch(() => {}).then(() => sendAll(frames, signal));
    last = mine;
    const clear = () => {
      if (last === mine) last = null;
    };
    mine.then(clear, clear);
    return mine;
  };
  return {
    write: (data, signal) => enqueue(inputFrames(data), signal),
    end: (signal) => enqueue([encodeFrame(frameType.end)], signal),
    release() {
      // Ends after what was written: the rest of it still belongs to the command.
      own?.end();
    },
  };
}

function inputFrames(data: Uint8Array | string): Buffer[] {
  const bytes =
    typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += streamFrameBytes) {
    const part = bytes.subarray(at, at + streamFrameBytes);
    frames.push(Buffer.concat([encodeHeader(frameType.bytes, part.length), part]));
  }
  return frames;
}

async function abortableDrain(socket: Socket, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return await drained(socket);
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(abortedError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    await Promise.race([drained(socket), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
