import { throwIfAborted } from "../abort.ts";

/** What a caller that waits for work passes to it. */
export interface WorkOptions {
  readonly signal: AbortSignal;
  readonly progress?: ((line: string) => void) | undefined;
}

/** Work that is done once for several callers. Aborted when the last of them aborts. */
export interface SharedWork<T> {
  join(key: string, options: WorkOptions, start: (options: WorkOptions) => Promise<T>): Promise<T>;
}

interface Running<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  readonly listeners: Set<(line: string) => void>;
  waiting: number;
}

export function createSharedWork<T>(): SharedWork<T> {
  const all = new Map<string, Running<T>>();

  const begin = (key: string, start: (options: WorkOptions) => Promise<T>): Running<T> => {
    const controller = new AbortController();
    const listeners = new Set<(line: string) => void>();
    const progress = (line: string) => {
      for (const listener of listeners) listener(line);
    };
    const forget = () => {
      if (all.get(key) === running) all.delete(key);
    };
    const result = start({ signal: controller.signal, progress }).finally(forget);
    // Nobody may be waiting by then.
    result.catch(() => undefined);
    const running: Running<T> = { result, controller, listeners, waiting: 0 };
    all.set(key, running);
    return running;
  };

  return {
    async join(key, { signal, progress }, start) {
      throwIfAborted(signal);
      const running = all.get(key) ?? begin(key, start);
      running.waiting += 1;
      if (progress !== undefined) running.listeners.add(progress);
      const { promise: left, reject } = Promise.withResolvers<never>();
      const leave = () => {
        running.waiting -= 1;
        if (running.waiting > 0) {
          try {
            throwIfAborted(signal);
          } catch (error) {
            reject(error);
          }
          return;
        }
        // The next caller begins anew; this one waits until the aborted work is gone.
        if (all.get(key) === running) all.delete(key);
        running.controller.abort(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([running.result, left]);
      } finally {
        signal.removeEventListener("abort", leave);
        if (progress !== undefined) running.listeners.delete(progress);
      }
    },
  };
}
