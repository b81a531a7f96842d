/** Estimates a response's tokens so far by its size, rather too high, so that no budget is exceeded unseen. */
export interface Estimate {
  /** Whole events, with one character per byte. */
  addEvents(events: string): void;
  /** Bytes of a response that is not streamed. */
  addText(bytes: number): void;
  readonly tokens: number;
}

/** English has about four bytes per token, code somewhat more than three. */
const bytesPerToken = 3;
const deltaMark = '"delta":';
/** Of many events in one chunk, inspect only this much and extrapolate. */
const windowBytes = 2048;
/** Parse the first few deltas, then every so many, to learn what share of a delta is text. */
const [firstSamples, sampleEvery] = [4, 32];

export function createEstimate(deltaText: (event: unknown) => string): Estimate {
  let [deltas, deltaBytes, plainBytes] = [0, 0, 0];
  let [sampledBytes, sampledTextBytes] = [0, 0];

  return {
    addEvents(events) {
      const first = events.indexOf(deltaMark);
      let [seenBytes, end] = [0, first];
      for (let at = first; at !== -1 && end - first < windowBytes; at = events.indexOf(deltaMark, end)) {
        const lineEnd = events.indexOf("\n", at);
        end = lineEnd === -1 ? events.length : lineEnd;
        seenBytes += end - at;
        deltas++;
        if (deltas <= firstSamples || deltas % sampleEvery === 0) sample(events, at, end);
      }
      const seenAll = end - first < windowBytes;
      deltaBytes += seenAll ? seenBytes : seenBytes * ((events.length - first) / (end - first));
    },
    addText(bytes) {
      plainBytes += bytes;
    },
    get tokens() {
      const text = sampledBytes === 0 ? 0 : deltaBytes * (sampledTextBytes / sampledBytes);
      return Math.ceil((text + plainBytes) / bytesPerToken);
    },
  };

  function sample(events: string, at: number, end: number): void {
    const line = events.slice(events.lastIndexOf("\n", at) + 1, end);
    sampledBytes += end - at;
    try {
      sampledTextBytes += deltaText(JSON.parse(line.slice("data:".length))).length;
    } catch {
      // Count an unreadable delta as text.
      sampledTextBytes += end - at;
    }
  }
}
