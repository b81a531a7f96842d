import { lineEnd } from "./marked-lines.ts";

/** Tokens of a response so far, by its size: a little more than it has, so that a budget is not passed unseen. */
export interface Estimate {
  addEvents(events: Buffer): void;
  /** Of a response that is not streamed. */
  addText(bytes: number): void;
  readonly tokens: number;
}

/** English has about four bytes per token, code somewhat more than three. */
const bytesPerToken = 3;
const delta = Buffer.from('"delta":');
/** So many deltas at the beginning, then one in so many, are decoded to learn how much of a delta is text. */
const [firstSamples, sampleEvery] = [4, 32];

export function createEstimate(deltaText: (event: unknown) => string): Estimate {
  let [deltas, deltaBytes, plainBytes] = [0, 0, 0];
  let [sampledBytes, sampledTextBytes] = [0, 0];

  return {
    addEvents(events) {
      for (let at = events.indexOf(delta); at !== -1; ) {
        const end = lineEnd(events, at);
        deltas++;
        deltaBytes += end - at;
        if (deltas <= firstSamples || deltas % sampleEvery === 0) sample(events, at, end);
        at = events.indexOf(delta, end);
      }
    },
    addText(bytes) {
      plainBytes += bytes;
    },
    get tokens() {
      const text = sampledBytes === 0 ? 0 : deltaBytes * (sampledTextBytes / sampledBytes);
      return Math.ceil((text + plainBytes) / bytesPerToken);
    },
  };

  function sample(events: Buffer, at: number, end: number): void {
    const line = events.toString("utf8", events.lastIndexOf(0x0a, at) + 1, end);
    sampledBytes += end - at;
    try {
      sampledTextBytes += Buffer.byteLength(deltaText(JSON.parse(line.slice("data:".length))));
    } catch {
      // What can not be read is taken for text alone.
      sampledTextBytes += end - at;
    }
  }
}
