import { expect, test } from "vitest";
import { createRate } from "./rate.ts";
import { createFakeTime } from "./testing.ts";

test("after a pause a burst passes, then a fixed number per second", () => {
  const time = createFakeTime();
  const rate = createRate(100, 300, time.clock);
  expect(rate.take(300)).toBe(0);
  expect(rate.take(50)).toBe(500);
  time.advance(499);
  expect(rate.take(50)).toBeGreaterThan(0);
  time.advance(1);
  expect(rate.take(50)).toBe(0);
  time.advance(60_000);
  expect(rate.take(301)).toBeGreaterThan(0);
  expect(rate.take(300)).toBe(0);
});

test("a charge beyond the balance is worked off", () => {
  const time = createFakeTime();
  const rate = createRate(100, 300, time.clock);
  rate.charge(400);
  expect(rate.take(100)).toBe(2000);
  time.advance(2000);
  expect(rate.take(100)).toBe(0);
});

test("a clock that is set back neither adds nor removes rate", () => {
  let now = 1000;
  const rate = createRate(100, 100, { now: () => now });
  expect(rate.take(100)).toBe(0);
  now = 0;
  expect(rate.take(1)).toBe(10);
  now = 10;
  expect(rate.take(1)).toBe(0);
});
