import type { Readable } from "node:stream";
import { SlipwayError } from "@slipway/contract";

/** Yields the lines of a stream. Fails with `too_large` for a line over the limit. */
export async function* readLines(stream: Readable, maxLineBytes: number): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let rest = chunk;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      yield Buffer.concat([...pending, rest.subarray(0, end)]).toString();
      pending = [];
      pendingBytes = 0;
      rest = rest.subarray(end + 1);
    }
    pending.push(rest);
    pendingBytes += rest.length;
    if (pendingBytes > maxLineBytes) throw new SlipwayError("too_large", `A line has more than ${maxLineBytes} bytes.`);
  }
  if (pendingBytes > 0) yield Buffer.concat(pending).toString();
}
