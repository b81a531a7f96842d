import { expect, test } from "vitest";
import { createScaledClock } from "./clock.ts";

test("a clock that is faster calls back in order, each at its time", async () => {
  using clock = createScaledClock({ startMs: Date.now(), factor: 1000 });
  const beganMs = clock.now();
  const called: [string, number][] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const note = (name: string) => () => void called.push([name, clock.now() - beganMs]);
  clock.after(90_000, resolve);
  clock.after(60_000, note("second"));
  clock.after(30_000, note("first"));
  clock.after(45_000, note("never"))();
  await promise;
  expect(called.map(([name]) => name)).toEqual(["first", "second"]);
  expect(called[0]?.[1]).toBeGreaterThanOrEqual(30_000);
  expect(called[1]?.[1]).toBeGreaterThanOrEqual(60_000);
});
