import type { IncomingMessage } from "node:http";
import { SlipwayError } from "@slipway/contract";

export const maxBodyBytes = 32 * 1024 * 1024;
/** So much of a body that is too large is read and dropped: many clients see an answer only after they have sent all. */
const maxDroppedBytes = 2 * maxBodyBytes;
const bodyMs = 60_000;

/** The whole body. Fails with `too_large`, with `invalid_request` when it comes too slowly, and with `aborted`. `onBytes` may refuse by throwing. */
export function readBody(request: IncomingMessage, onBytes: (count: number) => void = () => {}): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const timer = setTimeout(() => {
    reject(new SlipwayError("invalid_request", `the body did not come within ${bodyMs / 1000} s`));
  }, bodyMs);
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBodyBytes) chunks.push(chunk);
    else chunks.length = 0;
    if (bytes > maxDroppedBytes) reject(tooLarge());
    try {
      onBytes(chunk.length);
    } catch (error) {
      reject(error);
    }
  });
  request.once("end", () => (bytes > maxBodyBytes ? reject(tooLarge()) : resolve(Buffer.concat(chunks))));
  request.on("error", () => {});
  request.once("close", () => reject(new SlipwayError("aborted", "the client went away")));
  return promise.finally(() => {
    clearTimeout(timer);
    request.removeAllListeners("data").pause();
  });
}

function tooLarge(): SlipwayError {
  return new SlipwayError("too_large", `the body is over ${maxBodyBytes / 1024 / 1024} MiB`);
}
