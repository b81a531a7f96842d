import type { ModelEvent } from "../conversation.ts";
import type { StreamReader } from "./dialect.ts";
import { createSseReader } from "./sse.ts";

/** What the events of one stream mean. It holds the state between them. */
export interface Interpreter {
  /** `data` is one event's data. */
  read(data: string): ModelEvent[];
}

/** Nothing follows the end of a response, be it its stop or a failure. */
export function createStreamReader(
  interpreter: Interpreter,
  translate: (events: readonly ModelEvent[]) => readonly ModelEvent[] = (events) => events,
): StreamReader {
  const sse = createSseReader();
  let over = false;
  return {
    push(chunk) {
      const events: ModelEvent[] = [];
      for (const data of over ? [] : sse.push(chunk)) {
        for (const event of over ? [] : translate(interpreter.read(data))) {
          events.push(event);
          over = isEnd(event);
          if (over) break;
        }
      }
      return events;
    },
    /** What is still unfinished was cut, and means nothing. */
    end: () => [],
  };
}

function isEnd(event: ModelEvent): boolean {
  return event.type === "stop" || event.type === "failure";
}
