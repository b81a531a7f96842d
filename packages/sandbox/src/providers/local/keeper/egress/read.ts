import { once } from "node:events";
import type { Duplex } from "node:stream";

/** Exactly so many bytes, leaving what follows in the stream; undefined when it ends before. */
export async function readExactly(stream: Duplex, length: number): Promise<Buffer | undefined> {
  if (length === 0) return Buffer.alloc(0);
  while (!stream.destroyed) {
    const chunk: Buffer | null = stream.read(length);
    if (chunk !== null) return chunk.length === length ? chunk : undefined;
    if (stream.readableEnded) return undefined;
    await change(stream);
  }
  return undefined;
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
