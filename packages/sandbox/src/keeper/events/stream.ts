import type { SandboxEvent } from "@slipway/contract";
import type { EventLog } from "./log.ts";

/** A receiver of events. */
export interface EventSink {
  /** False when it must drain before it takes more. */
  send(event: SandboxEvent): boolean;
  onceDrained(callback: () => void): void;
}

/**
 * Sends the kept events after a sequence number, then each new one, without gaps. What a slow receiver has not taken
 * yet stays in the log, not in memory. Returns a function that stops it.
 */
export function streamEvents(log: EventLog, after: number, sink: EventSink): () => void {
  let sent = Math.min(after, log.last);
  let isFull = false;
  let kept = [][Symbol.iterator]() as ArrayIterator<SandboxEvent>;
  const send = (event: SandboxEvent) => {
    sent = event.sequence;
    if (sink.send(event)) return;
    isFull = true;
    sink.onceDrained(() => {
      isFull = false;
      catchUp();
    });
  };
  const nextKept = (): SandboxEvent | undefined => {
    const { value } = kept.next();
    if (value !== undefined) return value;
    kept = log.after(sent).values();
    return kept.next().value;
  };
  const catchUp = () => {
    while (!isFull && sent < log.last) {
      const event = nextKept();
      if (event === undefined) return;
      send(event);
    }
  };
  const stop = log.listen((event) => {
    if (isFull) return;
    if (event.sequence === sent + 1) send(event);
    else catchUp();
  });
  catchUp();
  return stop;
}
