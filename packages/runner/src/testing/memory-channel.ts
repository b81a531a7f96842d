import { PassThrough } from "node:stream";
import {
  type Control,
  type ControlMessage,
  newId,
  type RunnerEvent,
  type RunTaskInput,
  runTaskSchema,
} from "@slipway/contract";
import type { RunChannel } from "../run.ts";

/** A host in the same process: what it was told, and what it says. */
export interface MemoryChannel extends RunChannel {
  readonly events: RunnerEvent[];
  send(control: Control): void;
  /** Answers with the first event, past or to come, that fits. */
  until(fits: (event: RunnerEvent) => boolean): Promise<RunnerEvent>;
}

export function createMemoryChannel(task: RunTaskInput): MemoryChannel {
  const events: RunnerEvent[] = [];
  const arrivals = new EventTarget();
  const controls = new PassThrough({ objectMode: true });
  let sequence = 0;
  const run = newId("run");
  return {
    events,
    send: (control) => void controls.write({ ...control, sequence: ++sequence }),
    async until(fits) {
      for (;;) {
        const found = events.find(fits);
        if (found !== undefined) return found;
        await new Promise((resolve) => arrivals.addEventListener("event", resolve, { once: true }));
      }
    },
    hello: async () => ({ run, task: runTaskSchema.parse(task), next: 1 }),
    async emit(event) {
      events.push(event);
      arrivals.dispatchEvent(new Event("event"));
    },
    flush: async () => {},
    absences: () => 0,
    reach: async () => {},
    async *controls(signal) {
      const end = () => void controls.end();
      signal.addEventListener("abort", end);
      yield* controls as AsyncIterable<ControlMessage>;
    },
  };
}
