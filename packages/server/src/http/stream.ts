import { apiLimits, type BuildId, type StreamEnd } from "@slipway/contract";
import type { Context } from "hono";
import { type SSEStreamingApi, streamSSE } from "hono/streaming";
import type { BuildFace } from "../faces/builds/face.ts";
import { toSlipwayError } from "./errors.ts";

interface Followed {
  readonly build: BuildId;
  readonly after: number;
  readonly signal: AbortSignal;
}

/**
 * Server-sent events: `stream` for each event, with its number as the id, `done` when the build has ended, `error` for
 * what ended the stream before. Comments in between show that the stream lives.
 */
export async function streamEvents(context: Context, builds: BuildFace, followed: Followed): Promise<Response> {
  // What does not exist is answered as such, before the stream begins.
  await builds.events(followed.build, followed.after, 1);
  context.header("X-Accel-Buffering", "no");
  return streamSSE(context, async (stream) => {
    const gone = new AbortController();
    stream.onAbort(() => gone.abort());
    const heartbeat = setInterval(() => void stream.write(": alive\n\n"), apiLimits.heartbeatMs);
    try {
      await send(stream, builds, { ...followed, signal: AbortSignal.any([followed.signal, gone.signal]) });
    } catch (error) {
      await stream.writeSSE({ event: "error", data: JSON.stringify({ error: toSlipwayError(error).toJSON() }) });
    } finally {
      clearInterval(heartbeat);
    }
  });
}

async function send(stream: SSEStreamingApi, builds: BuildFace, { build, after, signal }: Followed): Promise<void> {
  for await (const event of builds.follow(build, after, signal)) {
    await stream.writeSSE({ event: "stream", id: String(event.sequence), data: JSON.stringify(event) });
  }
  if (signal.aborted) return;
  const { status, reason } = await builds.get(build);
  await stream.writeSSE({ event: "done", data: JSON.stringify({ status, reason } satisfies StreamEnd) });
}
