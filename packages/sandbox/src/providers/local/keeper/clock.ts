export interface Clock {
  now(): number;
  /** Calls back once after the delay, or before when that is very long; the answer cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** A longer one makes setTimeout call back at once. */
const longestDelayMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), longestDelayMs));
    return () => clearTimeout(timer);
  },
};
