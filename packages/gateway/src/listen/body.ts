import type { IncomingMessage } from "node:http";
import { SlipwayError } from "@slipway/contract";

const maxBodyBytes = 32 * 1024 * 1024;
/** So much of a body that is too large is read and dropped: many clients see an answer only after they have sent all. */
const maxDroppedBytes = 2 * maxBodyBytes;
const bodyMs = 60_000;

/**
 * The whole body. Fails with `too_large`, with `invalid_request` when it comes too slowly, and with `aborted`. `onBytes`
 * may refuse by throwing.
 */
export function readBody(request: IncomingMessage, onBytes: (count: number) => void = () => {}): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const finish = (error?: unknown) => {
    clearTimeout(timer);
    request.off("data", onData).off("end", onEnd).off("close", onCut).pause();
    if (error === undefined) resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    else reject(error);
  };
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBodyBytes) chunks.push(chunk);
    else chunks.length = 0;
    if (bytes > maxDroppedBytes) return finish(tooLarge());
    try {
      onBytes(chunk.length);
    } catch (error) {
      finish(error);
    }
  };
  const onEnd = () => finish(bytes > maxBodyBytes ? tooLarge() : undefined);
  const onCut = () => finish(new SlipwayError("aborted", "the client went away"));
  const onLate = () => finish(new SlipwayError("invalid_request", `the body did not come within ${bodyMs / 1000} s`));
  const timer = setTimeout(onLate, bodyMs);
  // A cut request emits `error` before `close`; it stays heard after the answer.
  request.on("error", () => {});
  request.on("close", onCut).on("end", onEnd).on("data", onData);
  return promise;
}

function tooLarge(): SlipwayError {
  return new SlipwayError("too_large", `the body is over ${maxBodyBytes / 1024 / 1024} MiB`);
}
