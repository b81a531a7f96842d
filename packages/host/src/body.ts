import type { IncomingMessage } from "node:http";
import { SlipwayError } from "@slipway/contract";

export interface BodyLimits {
  readonly maxBytes: number;
  /** How much of a body that is too large is read and dropped. Many clients see an answer only after they have sent all. */
  readonly droppedBytes?: number;
  /** How long the body may take. */
  readonly limitMs: number;
  /** The code for a body that takes longer. */
  readonly late: "invalid_request" | "event_rejected";
  /** Refuses by throwing. */
  readonly onBytes?: (count: number) => void;
  /** Starts a timer and returns what cancels it. */
  readonly after?: (ms: number, work: () => void) => () => void;
}

/** Reads a whole body. Fails with `too_large`, with `aborted` when it is cut, and as `limits` say. */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes, droppedBytes = 0, limitMs, late, onBytes = () => {}, after = afterTimeout } = limits;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const finish = (error?: unknown) => {
    cancel();
    request.off("data", onData).off("end", onEnd).off("close", onCut).pause();
    if (error === undefined) resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    else reject(error);
  };
  const tooLarge = () => new SlipwayError("too_large", `a body has at most ${maxBytes} bytes`);
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
    if (bytes > maxBytes + droppedBytes) return finish(tooLarge());
    try {
      onBytes(chunk.length);
    } catch (error) {
      finish(error);
    }
  };
  const onEnd = () => finish(bytes > maxBytes ? tooLarge() : undefined);
  const onCut = () => finish(new SlipwayError("aborted", "the body was cut"));
  const cancel = after(limitMs, () =>
    finish(new SlipwayError(late, `the body did not come within ${limitMs / 1000} s`)),
  );
  // A cut request emits `error` before `close`. It stays heard after the answer.
  request.on("error", () => {});
  request.on("close", onCut).on("end", onEnd).on("data", onData);
  return promise;
}

function afterTimeout(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
}
