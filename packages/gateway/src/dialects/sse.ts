import { SlipwayError } from "@slipway/contract";

const maxEventChars = 32 * 1024 * 1024;

/** Reads server-sent events from arbitrary pieces. Returns the data of each whole event. */
export interface SseReader {
  push(chunk: Uint8Array): string[];
}

/** Ignores an event without its blank line: the stream was cut in it. */
export function createSseReader({ maxChars = maxEventChars } = {}): SseReader {
  const decoder = new TextDecoder();
  const lineEnd = /\r\n|\n|\r(?!$)/g;
  let rest = "";
  let data: string[] = [];
  let dataChars = 0;
  /** Where to resume searching `rest` for a line end, so that a long line is searched once. */
  let searched = 0;

  return {
    push(chunk) {
      rest += decoder.decode(chunk, { stream: true });
      const events: string[] = [];
      for (let line = takeLine(); line !== undefined; line = takeLine()) {
        if (line === "") dispatch(events);
        else addLine(line);
      }
      if (rest.length + dataChars > maxChars) throw tooLong(maxChars);
      return events;
    },
  };

  /** A carriage return at the very end waits for the next piece: it may be half of a line end. */
  function takeLine(): string | undefined {
    lineEnd.lastIndex = searched;
    const end = lineEnd.exec(rest);
    if (end === null) {
      searched = rest.endsWith("\r") ? rest.length - 1 : rest.length;
      return undefined;
    }
    const line = rest.slice(0, end.index);
    rest = rest.slice(lineEnd.lastIndex);
    searched = 0;
    return line;
  }

  function addLine(line: string): void {
    if (!line.startsWith("data:")) return;
    const value = line.slice(line.startsWith(" ", 5) ? 6 : 5);
    data.push(value);
    dataChars += value.length;
  }

  function dispatch(events: string[]): void {
    if (data.length > 0) events.push(data.join("\n"));
    data = [];
    dataChars = 0;
  }
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
