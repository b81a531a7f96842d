import type { Clock } from "./clock.ts";

export type ManualClock = Clock & { advance(ms: number): Promise<void> };

/** A clock that stands still until it is advanced; what is due then runs in order, its promises included. */
export function manualClock(longestMs = Number.POSITIVE_INFINITY): ManualClock {
  let now = 0;
  const timers = new Set<{ at: number; callback: () => unknown }>();
  return {
    now: () => now,
    after(delayMs, callback) {
      const timer = { at: now + Math.min(Math.max(0, delayMs), longestMs), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const end = now + ms;
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        timers.delete(next);
        now = next.at;
        await next.callback();
      }
      now = end;
    },
  };
}
