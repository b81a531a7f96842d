import { once } from "node:events";
import type { Duplex } from "node:stream";

/** Reads exactly `length` bytes and leaves the rest in the stream; undefined when it ends before. */
export async function readExactly(stream: Duplex, length: number): Promise<Buffer | undefined> {
  let taken = Buffer.alloc(0);
  while (taken.length < length) {
    // Without a length: `read(n)` of a stream that holds less emits `readable` at once, again and again.
    const chunk: Buffer | null = stream.read();
    if (chunk !== null) taken = Buffer.concat([taken, chunk]);
    else if (stream.destroyed || stream.readableEnded) return undefined;
    else await change(stream);
  }
  if (taken.length > length) stream.unshift(taken.subarray(length));
  return taken.subarray(0, length);
}

async function change(stream: Duplex): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race(["readable", "end", "close"].map((event) => once(stream, event, { signal: done.signal })));
  } catch {
    // The loop sees that the stream is destroyed.
  } finally {
    done.abort();
  }
}
