import type { RunnerEvent } from "@slipway/contract";
import { createCoalescer } from "./coalesce.ts";
import { fit } from "./fit.ts";
import type { Spool } from "./spool.ts";

/** Puts events into the spool, text after a moment. */
export interface Emitter {
  emit(event: RunnerEvent): Promise<void>;
  /** Spools the held text. */
  settle(): Promise<void>;
}

export function createEmitter(spool: Spool, holdMs: number, onSpooled: () => void): Emitter {
  const texts = createCoalescer();
  let timer: NodeJS.Timeout | undefined;
  const keep = async (events: readonly RunnerEvent[]) => {
    if (events.length === 0) return;
    await spool.append(events);
    onSpooled();
  };
  const settle = () => {
    clearTimeout(timer);
    timer = undefined;
    return keep(texts.flush());
  };
  return {
    async emit(event) {
      const due = texts.push(fit(event));
      // Text that finds no room is lost: nobody is waiting for it.
      if (texts.isHolding) timer ??= setTimeout(() => void settle().catch(() => undefined), holdMs);
      await keep(due);
    },
    settle,
  };
}
