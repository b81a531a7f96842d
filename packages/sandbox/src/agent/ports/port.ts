import type { Duplex } from "node:stream";
import { SlipwayError } from "@slipway/contract";
import { abortedError } from "../../abort.ts";
import { type Dial, dialUnlessAborted } from "../connection.ts";
import { cutError, fileError } from "../errors.ts";
import { encodeRequest, frameHeaderBytes, frameType } from "../wire.ts";
import { readExactly } from "./read.ts";

/** A byte pipe to a port inside. Ending one direction leaves the other open. */
export async function connectPort(dial: Dial, port: number, signal?: AbortSignal): Promise<Duplex> {
  if (!Number.isInteger(port) || port < 1 || port > 65535)
    throw new SlipwayError("invalid_port", `${port} is not a port.`);
  const socket = await dialUnlessAborted(dial, signal);
  socket.allowHalfOpen = true;
  const cut = () => socket.destroy();
  signal?.addEventListener("abort", cut, { once: true });
  socket.on("error", cut);
  try {
    socket.write(encodeRequest("P", { n: String(port) }));
    await expectAnswer(socket, port);
    return socket;
  } catch (error) {
    cut();
    throw signal?.aborted ? abortedError(signal) : error;
  } finally {
    signal?.removeEventListener("abort", cut);
    socket.off("error", cut);
  }
}

/** Reads the one frame before the raw bytes. */
async function expectAnswer(socket: Duplex, port: number): Promise<void> {
  const header = await readExactly(socket, frameHeaderBytes);
  const payload = header && (await readExactly(socket, header.readUInt32LE(1)));
  if (payload === undefined) throw cutError("the port was reached");
  if (header?.[0] !== frameType.done) throw fileError(payload, `port ${port}`);
}
