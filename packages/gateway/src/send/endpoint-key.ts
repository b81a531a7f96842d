import type { Endpoint } from "../settings/endpoints.ts";
import type { Answer, Sink } from "./answer.ts";

const shown = "[key]";
/** Shorter keys are placeholders that may occur in any answer. */
const leastKeyLength = 16;

/** The endpoint's answer with its key removed. */
export function withoutKey(answer: Answer, { key = "" }: Pick<Endpoint, "key">): Answer {
  if (key.length < leastKeyLength) return answer;
  return { ...answer, pipe: (sink) => answer.pipe(removeKey(sink, Buffer.from(key))) };
}

/** Holds back a possible start of the key at a chunk's end until the next chunk decides. */
function removeKey(sink: Sink, key: Buffer): Sink {
  let held: Uint8Array = Buffer.alloc(0);
  return {
    data(chunk) {
      const bytes = held.length === 0 ? asBuffer(chunk) : Buffer.concat([held, chunk]);
      const clean = bytes.includes(key) ? replaceKey(bytes, key) : bytes;
      const end = startOfKey(clean, key);
      held = clean.subarray(end);
      if (end > 0) sink.data(clean.subarray(0, end));
    },
    end(error) {
      if (held.length > 0) sink.data(held);
      sink.end(error);
    },
  };
}

/** Where a prefix of the key begins at the end of the bytes. Without one, their length. */
function startOfKey(bytes: Buffer, key: Buffer): number {
  const first = key.readUInt8(0);
  let at = bytes.indexOf(first, Math.max(0, bytes.length - key.length + 1));
  while (at !== -1 && bytes.compare(key, 0, bytes.length - at, at) !== 0) at = bytes.indexOf(first, at + 1);
  return at === -1 ? bytes.length : at;
}

function replaceKey(bytes: Buffer, key: Buffer): Buffer {
  return Buffer.from(bytes.toString("latin1").replaceAll(key.toString("latin1"), shown), "latin1");
}

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
