import type { Clock } from "../clock.ts";

export interface FakeClock extends Clock {
  advance(ms: number): void;
}

export function createFakeClock(): FakeClock {
  let nowMs = 1_800_000_000_000;
  return {
    now: () => nowMs,
    advance(ms) {
      nowMs += ms;
    },
  };
}
