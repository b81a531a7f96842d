export interface Clock {
  now(): number;
  /** Calls back once after the delay, or earlier when that is very long. The result cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** With a longer delay, setTimeout calls back at once. */
const longestDelayMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), longestDelayMs));
    return () => clearTimeout(timer);
  },
};

/** Repeats the work, each time after a pause. Disposing of it ends that. */
export function repeat(clock: Clock, pauseMs: () => number, work: () => Promise<unknown>): Disposable {
  let cancel = () => {};
  let stopped = false;
  const again = () => {
    if (!stopped) cancel = clock.after(pauseMs(), () => work().finally(again));
  };
  again();
  return {
    [Symbol.dispose]() {
      stopped = true;
      cancel();
    },
  };
}
