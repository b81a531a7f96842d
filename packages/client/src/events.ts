import { apiLimits, errorAnswerSchema, pause, SlipwayError } from "@slipway/contract";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { z } from "zod";
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

/** Every event after the given one, once and in order, until the server says that it was the last. */
export async function* followEvents<E extends Numbered>(
  transport: Transport,
  path: string,
  schema: z.ZodType<E>,
  { after = 0, signal, patienceMs = 60_000 }: FollowOptions,
): AsyncGenerator<E> {
  let last = after;
  let failures = 0;
  let lostAt = 0;
  const onHeard = () => {
    failures = 0;
  };
  for (;;) {
    let failure = new SlipwayError("server_unavailable", "the server has ended the stream");
    try {
      for await (const message of openStream({ transport, path, last, outer: signal, onHeard })) {
        if (message.event === "done") return;
        const event = readMessage(message, schema);
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

interface Numbered {
  readonly sequence: number;
}

function readMessage<E>({ event, data }: EventSourceMessage, schema: z.ZodType<E>): E {
  const value = parsed(data);
  if (event === "error") {
    const answer = errorAnswerSchema.safeParse(value);
    if (answer.success) throw errorOf(answer.data.error);
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  throw new SlipwayError("internal", "Unknown event from the server. Do client and server versions match?");
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
  readonly path: string;
  readonly last: number;
  readonly outer: AbortSignal | undefined;
  onHeard(): void;
}

async function* openStream({ transport, path, last, outer, onHeard }: OpenStream): AsyncGenerator<EventSourceMessage> {
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
    const { body } = await send(transport, { method: "GET", path, headers, signal });
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
