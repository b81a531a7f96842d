import {
  apiLimits,
  type BuildId,
  type EventView,
  errorAnswerSchema,
  eventViewSchema,
  pause,
  SlipwayError,
} from "@slipway/contract";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { errorOf, failureOf, send, type Transport } from "./transport.ts";

export interface FollowOptions {
  /** The number of the last event that is known. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** How long a server may be away. */
  readonly patienceMs?: number;
}

const silenceMs = 3 * apiLimits.heartbeatMs;
const maxWaitMs = 5000;
const maxMessageLength = 4 * 1024 * 1024;

/** Every event after the given one, once and in order, until the build has ended. A lost connection is made anew. */
export async function* followEvents(
  transport: Transport,
  build: BuildId,
  { after = 0, signal, patienceMs = 60_000 }: FollowOptions,
): AsyncGenerator<EventView> {
  let last = after;
  let failures = 0;
  let lostAt = 0;
  const onHeard = () => {
    failures = 0;
  };
  for (;;) {
    let failure = new SlipwayError("server_unavailable", "the server has ended the stream");
    try {
      for await (const message of openStream({ transport, build, last, outer: signal, onHeard })) {
        if (message.event === "done") return;
        const event = readMessage(message);
        if (event.sequence <= last) continue;
        last = event.sequence;
        yield event;
      }
    } catch (error) {
      failure = failureOf(error, signal);
      if (failure.retry === "never" || signal?.aborted) throw failure;
    }
    if (failures === 0) lostAt = performance.now();
    else if (performance.now() - lostAt > patienceMs) throw failure;
    await pause(Math.min(100 * 2 ** failures++, maxWaitMs), signal).catch(() => {
      throw failureOf(undefined, signal);
    });
  }
}

function readMessage({ event, data }: EventSourceMessage): EventView {
  const value = parsed(data);
  if (event === "error") {
    const answer = errorAnswerSchema.safeParse(value);
    if (answer.success) throw errorOf(answer.data.error);
  }
  const read = eventViewSchema.safeParse(value);
  if (read.success) return read.data;
  throw new SlipwayError("internal", "an event of the server is not understood; is it of another version?");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface OpenStream {
  readonly transport: Transport;
  readonly build: BuildId;
  readonly last: number;
  readonly outer: AbortSignal | undefined;
  onHeard(): void;
}

async function* openStream({ transport, build, last, outer, onHeard }: OpenStream): AsyncGenerator<EventSourceMessage> {
  const silence = new AbortController();
  const signal = outer === undefined ? silence.signal : AbortSignal.any([outer, silence.signal]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), silenceMs);
  };
  const messages: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => messages.push(message), maxBufferSize: maxMessageLength });
  const decoder = new TextDecoder();
  try {
    wait();
    const headers = { accept: "text/event-stream", "last-event-id": String(last) };
    const { body } = await send(transport, { method: "GET", path: `/v1/builds/${build}/events`, headers, signal });
    for await (const chunk of body ?? []) {
      wait();
      onHeard();
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* messages.splice(0);
    }
  } catch (error) {
    if (!silence.signal.aborted) throw error;
    throw new SlipwayError("server_unavailable", "the server has fallen silent");
  } finally {
    clearTimeout(timer);
    // A reader that stops early leaves the rest unread.
    silence.abort();
  }
}
