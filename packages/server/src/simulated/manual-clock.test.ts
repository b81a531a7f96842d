import { expect, test } from "vitest";
import { createManualClock } from "./manual-clock.ts";

test("time stands still until it is moved, and what is due runs in order", async () => {
  const clock = createManualClock(0);
  const order: string[] = [];
  clock.after(20, () => order.push(`second at ${clock.now()}`));
  clock.after(10, () => order.push(`first at ${clock.now()}`));
  clock.after(10, () => order.push("set later, for the same moment"));
  await clock.advance(9);
  expect(order).toEqual([]);
  await clock.advance(11);
  expect(order).toEqual(["first at 10", "set later, for the same moment", "second at 20"]);
  expect(clock.now()).toBe(20);
});

test("what a callback sets off within the time runs, too", async () => {
  const clock = createManualClock(0);
  let ticks = 0;
  void (async () => {
    for (;;) {
      await new Promise<void>((resolve) => clock.after(10, resolve));
      ticks++;
    }
  })();
  await clock.advance(1000);
  expect(ticks).toBe(100);
});

test("a cancelled callback does not run, and many of them take no room", async () => {
  const clock = createManualClock(0);
  let ran = 0;
  const cancels = Array.from({ length: 10_000 }, (_, i) => clock.after(i, () => ran++));
  for (const cancel of cancels.slice(0, 9999)) cancel();
  for (const cancel of cancels.slice(0, 9999)) cancel();
  expect(clock.pending).toBe(1);
  await clock.advance(10_000);
  expect(ran).toBe(1);
  expect(clock.pending).toBe(0);
});

test("timers in any order come out sorted", async () => {
  const clock = createManualClock(0);
  const seen: number[] = [];
  for (let i = 0; i < 500; i++) {
    const at = (i * 7919) % 1000;
    clock.after(at, () => seen.push(at));
  }
  await clock.advance(1000);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen).toHaveLength(500);
});
