import { apiLimits, type StreamEnd } from "@slipway/contract";
import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import { toSlipwayError } from "./errors.ts";

type Follow = (signal: AbortSignal) => Promise<AsyncGenerator<{ readonly sequence: number }, StreamEnd | undefined>>;

/**
 * Server-sent events: `stream` for each event, with its number as the id, `done` when there will be no more, `error` for
 * what ended the stream before. Comments in between show that the stream lives. `signal`: the server ends.
 */
export async function streamEvents(context: Context, follow: Follow, signal: AbortSignal): Promise<Response> {
  const gone = new AbortController();
  // A refusal is an answer of its own, before the stream begins.
  const events = await follow(AbortSignal.any([signal, gone.signal]));
  context.header("X-Accel-Buffering", "no");
  return streamSSE(context, async (stream) => {
    stream.onAbort(() => gone.abort());
    const heartbeat = setInterval(() => void stream.write(": alive\n\n"), apiLimits.heartbeatMs);
    try {
      for (;;) {
        const { done, value } = await events.next();
        if (!done) {
          await stream.writeSSE({ event: "stream", id: String(value.sequence), data: JSON.stringify(value) });
          continue;
        }
        if (value !== undefined) await stream.writeSSE({ event: "done", data: JSON.stringify(value) });
        return;
      }
    } catch (error) {
      await stream.writeSSE({ event: "error", data: JSON.stringify({ error: toSlipwayError(error).toJSON() }) });
    } finally {
      clearInterval(heartbeat);
      await events.return(undefined);
    }
  });
}
