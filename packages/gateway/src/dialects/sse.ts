import { SlipwayError } from "@slipway/contract";
import { createParser } from "eventsource-parser";

const maxEventChars = 32 * 1024 * 1024;

/** Reads server-sent events from pieces that are cut anywhere. Answers the data of each event that is whole. */
export interface SseReader {
  push(chunk: Uint8Array): string[];
}

/** An event that is not followed by its blank line never came: the stream was cut in it. */
export function createSseReader({ maxChars = maxEventChars } = {}): SseReader {
  const decoder = new TextDecoder();
  const events: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => events.push(data),
    onError({ type }) {
      if (type === "max-buffer-size-exceeded") throw tooLong(maxChars);
    },
    maxBufferSize: maxChars,
  });
  return {
    push(chunk) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      return events.splice(0);
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

function tooLong(maxChars: number): SlipwayError {
  return new SlipwayError("invalid_answer", `An event of the model's answer is longer than ${maxChars} characters.`);
}
