import { once } from "node:events";
import type { Duplex } from "node:stream";

/** Exactly so many bytes, leaving what follows in the stream; undefined when it ends before. */
export async function readExactly(stream: Duplex, length: number): Promise<Buffer | undefined> {
  let taken = Buffer.alloc(0);
  while (taken.length < length) {
    // All there is: a stream that holds less than it is asked for says `readable` again at once, without end.
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
    // An error: the loop sees the stream destroyed.
  } finally {
    done.abort();
  }
}
