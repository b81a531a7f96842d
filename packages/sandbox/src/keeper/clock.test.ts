import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { systemClock } from "./clock.ts";

test("a delay of more than 24 days does not end at once", async () => {
  let called = false;
  const cancel = systemClock.after(30 * 24 * 60 * 60_000, () => {
    called = true;
  });
  await delay(20);
  cancel();
  expect(called).toBe(false);
});
