import type { SandboxEvent } from "@slipway/contract";
import type { EventOptions } from "../../provider.ts";
import { Notifier } from "./notifier.ts";

/** Everything that happened, numbered without a gap. The oldest go when there are too many. */
export class EventLog {
  readonly #keep: number;
  #events: SandboxEvent[] = [];
  #last = 0;
  readonly #changed = new Notifier();

  constructor(keep: number) {
    this.#keep = keep;
  }

  add(make: (sequence: number) => SandboxEvent): void {
    this.#events.push(make(++this.#last));
    if (this.#events.length > 2 * this.#keep) this.#events = this.#events.slice(-this.#keep);
    this.#changed.notify();
  }

  async *read({ after = 0, sandbox, follow = true, signal }: EventOptions): AsyncGenerator<SandboxEvent> {
    for (let seen = after; ; ) {
      const first = this.#events[0]?.sequence ?? this.#last + 1;
      for (let index = Math.max(0, seen + 1 - first); index < this.#events.length; index++) {
        const event = this.#events[index];
        if (event === undefined) break;
        seen = event.sequence;
        if (sandbox === undefined || event.sandbox === sandbox) yield event;
        // What was kept may have moved while the reader had the event.
        if (this.#events[index] !== event) break;
      }
      if (seen < this.#last) continue;
      if (!follow) return;
      await this.#changed.wait(signal);
    }
  }
}
