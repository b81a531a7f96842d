import { SlipwayError } from "@slipway/contract";
import { createParser } from "eventsource-parser";

const maxEventChars = 32 * 1024 * 1024;

/** Reads server-sent events from arbitrary pieces. Returns the data of each whole event. */
export interface SseReader {
  push(chunk: Uint8Array): string[];
}

/** Ignores an event without its blank line: the stream was cut in it. */
export function createSseReader({ maxChars = maxEventChars } = {}): SseReader {
  const decoder = new TextDecoder();
  let events: string[] = [];
  const parser = createParser({
    maxBufferSize: maxChars,
    onEvent: ({ data }) => events.push(data),
    onError({ type }) {
      // It also reports fields that it does not know, which mean nothing.
      if (type !== "max-buffer-size-exceeded") return;
      const message = `An event of the model's answer is longer than ${maxChars} characters.`;
      throw new SlipwayError("invalid_answer", message);
    },
  });
  return {
    push(chunk) {
      events = [];
      parser.feed(decoder.decode(chunk, { stream: true }));
      return events;
    },
  };
}

export function writeSse(data: unknown, event?: string): string {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return `${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** A last event, for a stream that may have been cut inside a line. */
export function breakOff(event: string): string {
  return `\n\n${event}`;
}
