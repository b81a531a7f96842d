import type { Endpoint } from "./endpoints.ts";

const shown = "[key]";
/** Shorter ones are placeholders, whose words may stand in any answer. */
const leastKeyLength = 16;

/** What an endpoint says, without its key. */
export function withoutKey(words: string, { key }: Endpoint): string {
  return key === undefined ? words : words.replaceAll(key, shown);
}

/** The same for the bytes of an answer, whose errors may stand in the middle of it. */
export function keyRemover({ key = "" }: Endpoint): (chunk: Uint8Array) => Uint8Array {
  if (key.length < leastKeyLength) return (chunk) => chunk;
  const bytes = Buffer.from(key);
  return (chunk) => {
    const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    return buffer.includes(bytes) ? Buffer.from(buffer.toString("latin1").replaceAll(key, shown), "latin1") : chunk;
  };
}
