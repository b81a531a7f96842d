import { expect, test } from "vitest";
import { createClock } from "./clock.ts";

const day = 24 * 60 * 60 * 1000;

test("moving the clock does what falls due, in its order, before it resolves", async () => {
  const clock = createClock();
  const startedMs = clock.now();
  const done: string[] = [];
  clock.at(startedMs + 2 * day, () => done.push("second"));
  clock.at(startedMs + day, async () => {
    await Promise.resolve();
    done.push("first");
    clock.at(startedMs + day + 1, () => done.push("made by the first"));
  });
  clock.at(startedMs + 4 * day, () => done.push("too late"))[Symbol.dispose]();
  const gone = clock.at(startedMs + day, () => done.push("taken back"));
  gone[Symbol.dispose]();
  await clock.advance(3 * day);
  expect(done.toSorted()).toEqual(["first", "made by the first", "second"]);
  expect(done[0]).toBe("first");
  expect(clock.now()).toBeGreaterThanOrEqual(startedMs + 3 * day);
});

test("without being moved, it rings by itself", async () => {
  const clock = createClock();
  await new Promise((resolve) => {
    // The clock's own timers keep no program alive.
    const alive = setInterval(() => {}, 1000);
    clock.at(clock.now() + 5, () => {
      clearInterval(alive);
      resolve(undefined);
    });
  });
});
