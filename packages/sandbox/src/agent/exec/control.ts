import type { Duplex } from "node:stream";
import { type ExecId, hasCode, SlipwayError } from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import { type Dial, drained, expectDone, openCall } from "../connection.ts";
import { cutError } from "../errors.ts";
import { bytesFrames, encodeFrame, encodeRequest, frameType } from "../wire.ts";

/** Sends one control frame and awaits its answer. Its own connection keeps it from waiting behind standard input. */
export async function control(dial: Dial, id: ExecId, frame: Buffer, signal?: AbortSignal): Promise<void> {
  using call = await openCall(dial, "C", { i: id }, signal);
  try {
    await call.send(frame);
    await expectDone(call, id);
  } catch (error) {
    // The handler ended before the connection reached it.
    if (hasCode(error, "provider_unavailable"))
      throw new SlipwayError("exec_ended", `${id} has ended.`, { cause: error });
    throw error;
  }
}

/** An exec's standard input: over the connection that started it while that is open, else over a control connection. */
export interface ExecInput {
  write(data: Uint8Array | string, signal?: AbortSignal): Promise<void>;
  end(signal?: AbortSignal): Promise<void>;
  release(): void;
}

export function createExecInput(dial: Dial, id: ExecId, live: () => Duplex | null): ExecInput {
  let own: Duplex | null = null;
  let last: Promise<void> | null = null;

  const connection = async (): Promise<Duplex> => {
    const current = live();
    if (current !== null) return current;
    if (own === null || own.destroyed) {
      own = await dial();
      // Only a refusal comes back; the close that follows tells writers.
      own.on("error", () => {}).resume();
      own.write(encodeRequest("C", { i: id }));
    }
    return own;
  };
  const sendAll = async (frames: readonly Buffer[], signal: AbortSignal | undefined): Promise<void> => {
    for (const frame of frames) {
      throwIfAborted(signal);
      const socket = await connection();
      if (socket.destroyed) throw cutError("standard input was sent");
      if (!socket.write(frame)) await drained(socket, signal);
    }
  };
  /** Runs calls in order. */
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
    // Copied now: the caller may reuse its buffer.
    write: (data, signal) => enqueue([...bytesFrames(data)], signal),
    end: (signal) => enqueue([encodeFrame(frameType.end)], signal),
    release() {
      // A half-close: the command still gets what was written.
      own?.end();
    },
  };
}
