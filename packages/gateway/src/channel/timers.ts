export interface Timers {
  /** Calls back once after the delay; the answer cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** They keep no process alive. */
export const systemTimers: Timers = {
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs).unref();
    return () => clearTimeout(timer);
  },
};
