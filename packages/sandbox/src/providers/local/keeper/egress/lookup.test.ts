import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { boundedResolve } from "./lookup.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("no more lookups run at once than allowed, and the others follow", async () => {
  let running = 0;
  let most = 0;
  const finish: (() => void)[] = [];
  const resolve = boundedResolve(
    async (name) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((done) => finish.push(done));
      running -= 1;
      return [name];
    },
    2,
    1000,
  );
  const answers = Promise.all(["a", "b", "c", "d", "e"].map((name) => resolve(name)));
  for (let i = 0; i < 5; i++) {
    await vi.waitFor(() => expect(finish.length).toBeGreaterThan(0));
    finish.shift()?.();
  }
  expect(await answers).toEqual([["a"], ["b"], ["c"], ["d"], ["e"]]);
  expect(most).toBe(2);
});

test("a lookup that fails or hangs has no addresses, and one that waited too long is never made", async () => {
  const asked: string[] = [];
  let release = () => {};
  const resolve = boundedResolve(
    (name) => {
      asked.push(name);
      if (name === "bad") return Promise.reject(new Error("ENOTFOUND"));
      return new Promise((done) => {
        release = () => done(["192.0.2.1"]);
      });
    },
    1,
    1000,
  );
  expect(await resolve("bad")).toEqual([]);
  const answers = Promise.all([resolve("hangs"), resolve("waits")]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await answers).toEqual([[], []]);
  release();
  await vi.advanceTimersByTimeAsync(0);
  expect(asked).toEqual(["bad", "hangs"]);
});
