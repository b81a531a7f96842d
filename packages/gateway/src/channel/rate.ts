import type { Clock } from "../ports/ports.ts";

/** A token bucket with a rate per second and a burst. */
export interface Rate {
  /** Returns 0 if taken. Otherwise takes nothing and returns how many milliseconds to wait. */
  take(amount: number): number;
  /** Takes even more than is left: later takers wait until it is made up for. */
  charge(amount: number): void;
}

export function createRate(perSecond: number, burst: number, clock: Clock): Rate {
  let level = burst;
  let at = clock.now();
  const refill = () => {
    const now = clock.now();
    level = Math.min(burst, level + (Math.max(0, now - at) / 1000) * perSecond);
    at = now;
  };
  return {
    take(amount) {
      refill();
      if (level < amount) return Math.ceil(((amount - level) / perSecond) * 1000);
      level -= amount;
      return 0;
    },
    charge(amount) {
      refill();
      level -= amount;
    },
  };
}
