import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import type { Dial } from "../agent/connection.ts";
import { abortedError, cutError, decodeFailure, fileError } from "../agent/errors.ts";
import { encodeRequest, frameHeaderBytes, frameType } from "../agent/wire.ts";

/** A byte pipe to a port inside. Ending one direction leaves the other open. */
export async function connectPort(dial: Dial, port: number, signal?: AbortSignal): Promise<Duplex> {
  if (!Number.isInteger(port) || port < 1 || port > 65535)
    throw new SlipwayError("invalid_port", `${port} is not a port`);
  if (signal?.aborted) throw abortedError(signal);
  const socket = await dial();
  if (signal?.aborted) {
    socket.destroy();
    throw abortedError(signal);
  }
  socket.allowHalfOpen = true;
  const onAbort = () => socket.destroy();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    socket.write(encodeRequest("P", [["n", String(port)]]));
    const answer = await readAnswer(socket);
    if (answer.type !== frameType.done) throw fileError(decodeFailure(answer.payload), `port ${port}`);
    return socket;
  } catch (error) {
    socket.destroy();
    throw signal?.aborted ? abortedError(signal) : error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

/** The one frame before the raw bytes; what comes behind it is put back. */
function readAnswer(socket: Duplex): Promise<{ type: number; payload: Buffer }> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const stop = () => socket.off("readable", onReadable).off("error", fail).off("close", fail);
    const fail = (cause?: unknown) => {
      stop();
      reject(cutError("the port was reached", cause));
    };
    const onReadable = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      if (received.length < frameHeaderBytes) return;
      const end = frameHeaderBytes + received.readUInt32LE(1);
      if (received.length < end) return;
      stop();
      if (received.length > end) socket.unshift(received.subarray(end));
      resolve({ type: received[0] as number, payload: received.subarray(frameHeaderBytes, end) });
    };
    socket.on("readable", onReadable).on("error", fail).on("close", fail);
  });
}
