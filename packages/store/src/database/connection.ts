/** Streams would hold a connection across a caller's pauses: long results are read in pages. */
export function rejectStreaming(): never {
  throw new Error("queries are not streamed");
}
