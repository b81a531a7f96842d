import { EventEmitter } from "node:events";
import type { BuildId } from "@slipway/contract";
import type { Store } from "@slipway/engine";

/** Wakes those in this process who wait for something to happen in a build. What other processes do is found by looking. */
export interface News {
  tell(build: BuildId): void;
  /** Hears all that is told from now on. */
  listen(build: BuildId): Listening;
}

export interface Listening extends Disposable {
  /** Until something was told since the last time, the time is over or the signal aborts. */
  next(limitMs: number, signal: AbortSignal): Promise<void>;
}

export function createNews(): News {
  const emitter = new EventEmitter().setMaxListeners(0);
  return {
    tell: (build) => void emitter.emit(build),
    listen(build) {
      let told = Promise.withResolvers<void>();
      const hear = () => told.resolve();
      emitter.on(build, hear);
      return {
        async next(limitMs, signal) {
          await beforeLimit(told.promise, limitMs, signal);
          told = Promise.withResolvers<void>();
        },
        [Symbol.dispose]: () => void emitter.off(build, hear),
      };
    },
  };
}

/**
 * The same store. What attempts say of their progress is news at once; what a build's state follows from, only when a turn has
 * taken it in: who hears of a plan asks for it.
 */
export function announcing(store: Store, { tell }: Pick<News, "tell">): Store {
  const report: Store["events"]["report"] = async (build, events) => {
    const last = await store.events.report(build, events);
    if (events.every(({ type }) => type === "attempt.progress")) tell(build);
    return last;
  };
  return { ...store, events: { ...store.events, report } };
}

async function beforeLimit(told: Promise<void>, limitMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const limit = Promise.withResolvers<void>();
  const timer = setTimeout(limit.resolve, limitMs);
  const abort = () => limit.resolve();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await Promise.race([told, limit.promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}
