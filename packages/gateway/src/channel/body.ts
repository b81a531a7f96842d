import type { IncomingMessage } from "node:http";
import { SlipwayError } from "@slipway/contract";
import type { Timers } from "./timers.ts";

const bodyMs = 10_000;

/** The whole body, if it is short enough and comes soon enough. */
export function readBody(request: IncomingMessage, maxBytes: number, timers: Timers): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = () => {
      cancel();
      request.off("data", onData).off("end", onEnd).off("close", onCut).pause();
    };
    const refuse = (error: SlipwayError) => {
      stop();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) refuse(new SlipwayError("too_large", `a body has at most ${maxBytes} bytes`));
      else chunks.push(chunk);
    };
    const onEnd = () => {
      stop();
      resolve(Buffer.concat(chunks));
    };
    const onCut = () => refuse(new SlipwayError("aborted", "the request was cut"));
    const cancel = timers.after(bodyMs, () =>
      refuse(new SlipwayError("event_rejected", `the body did not come within ${bodyMs / 1000} s`)),
    );
    // A cut request emits `error` before `close`; it stays heard after the answer.
    request.on("error", () => {});
    request.on("close", onCut).on("end", onEnd).on("data", onData);
  });
}
