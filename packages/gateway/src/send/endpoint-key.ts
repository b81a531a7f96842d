import type { Endpoint } from "../settings/endpoints.ts";
import type { Answer, Sink } from "./answer.ts";

const shown = "[key]";
/** Shorter ones are placeholders, whose words may stand in any answer. */
const leastKeyLength = 16;

/** What an endpoint says, without its key, wherever it quotes it. */
export function withoutKey(answer: Answer, { key = "" }: Pick<Endpoint, "key">): Answer {
  if (key.length < leastKeyLength) return answer;
  return { ...answer, pipe: (sink) => answer.pipe(removeKey(sink, Buffer.from(key))) };
}

/** Holds back an end of a chunk that may be the beginning of the key until the next one shows it. */
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

/** Where a part of the key begins that goes on to the bytes' end; their length when there is none. */
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
