/** A stream would hold its connection while the caller pauses. Long results are read in pages instead. */
export function rejectStreaming(): never {
  throw new Error("queries are not streamed");
}
