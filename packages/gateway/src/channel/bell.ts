/** Wakes everyone who waits for a change. */
export interface Bell {
  ring(): void;
  /** Resolves at the next ring, or when the signal aborts. */
  next(signal?: AbortSignal): Promise<void>;
}

export function createBell(): Bell {
  const waiting = new Set<() => void>();
  return {
    ring() {
      for (const wake of [...waiting]) wake();
    },
    next(signal) {
      return new Promise((resolve) => {
        const wake = () => {
          waiting.delete(wake);
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        waiting.add(wake);
        signal?.addEventListener("abort", wake);
        if (signal?.aborted) wake();
      });
    },
  };
}
