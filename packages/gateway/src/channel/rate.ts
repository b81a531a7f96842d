import type { Clock } from "../ports/ports.ts";

/** A token bucket: so many a second, after a pause so many at once. */
export interface Rate {
  /** 0: taken. Else nothing is taken, and so many milliseconds are to be waited. */
  take(amount: number): number;
  /** Takes more than there may be: what follows waits until it is made up for. */
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
