import type { ModelEvent } from "./conversation.ts";
import type { StreamReader } from "./dialect.ts";
import { createSseReader } from "./sse.ts";

/** Interprets the events of one stream and holds the state between them. */
export interface Interpreter {
  /** `data` is one event's data. */
  read(data: string): ModelEvent[];
}

/** Nothing follows a response's stop or failure. */
export function createStreamReader(
  interpreter: Interpreter,
  translate: (events: readonly ModelEvent[]) => readonly ModelEvent[] = (events) => events,
): StreamReader {
  const sse = createSseReader();
  let over = false;
  return {
    *push(chunk) {
      if (over) return;
      for (const data of sse.push(chunk)) {
        for (const event of translate(interpreter.read(data))) {
          over = event.type === "stop" || event.type === "failure";
          yield event;
          if (over) return;
        }
      }
    },
  };
}
