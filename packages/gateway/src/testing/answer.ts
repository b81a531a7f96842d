import type { Answer } from "../send/answer.ts";

/** An endpoint's stream, all of which has come in these chunks. */
export function answerOf(...chunks: readonly Uint8Array[]): Answer {
  return {
    status: 200,
    contentType: "text/event-stream",
    retryAfter: undefined,
    pipe(sink) {
      for (const chunk of chunks) sink.data(chunk);
      sink.end();
    },
    pause() {},
    resume() {},
    abort() {},
  };
}
