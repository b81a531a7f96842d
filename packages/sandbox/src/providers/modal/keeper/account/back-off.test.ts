import { expect, test } from "vitest";
import { manualClock } from "../../../../keeper/clock-fixture.ts";
import { withBackOff } from "./back-off.ts";

const limited = Object.assign(new Error("slow down"), { code: 8 });
const refused = Object.assign(new Error("no"), { code: 3 });

test("what is refused for now is asked again, later each time", async () => {
  const pausesMs: number[] = [];
  const clock = {
    now: () => 0,
    after(delayMs: number, callback: () => void) {
      pausesMs.push(delayMs);
      queueMicrotask(callback);
      return () => {};
    },
  };
  let asked = 0;
  const call = async () => {
    if (++asked < 4) throw limited;
    return "done";
  };
  expect(await withBackOff(call, { clock, random: () => 1 })).toBe("done");
  expect(pausesMs).toEqual([250, 500, 1000]);
});

test("in the end the refusal is told; another one at once", async () => {
  const clock = manualClock();
  let asked = 0;
  const call = (error: Error) => async () => {
    asked++;
    throw error;
  };
  await expect(withBackOff(call(refused), { clock })).rejects.toBe(refused);
  expect(asked).toBe(1);
  const failing = expect(withBackOff(call(limited), { clock })).rejects.toBe(limited);
  for (let i = 0; i < 100; i++) await clock.advance(500);
  await failing;
  expect(asked).toBe(8);
});

test("a caller that gives up does not wait", async () => {
  const controller = new AbortController();
  const call = async () => {
    throw limited;
  };
  const answer = withBackOff(call, { clock: manualClock(), signal: controller.signal });
  const told = expect(answer).rejects.toMatchObject({ code: "aborted" });
  await Promise.resolve();
  setImmediate(() => controller.abort());
  await told;
});
