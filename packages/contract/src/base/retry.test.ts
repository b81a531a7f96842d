import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SlipwayError } from "./errors.ts";
import { doubling, pause, retry } from "./retry.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const busy = new SlipwayError("database_busy", "busy");

test("a failure that may pass is retried after each wait until it works", async () => {
  const atMs: number[] = [];
  const begin = Date.now();
  const work = retry(
    async () => {
      atMs.push(Date.now() - begin);
      if (atMs.length < 4) throw busy;
      return "done";
    },
    { waitsMs: doubling(100, 300) },
  );
  await vi.advanceTimersByTimeAsync(1000);
  expect(await work).toBe("done");
  expect(atMs).toEqual([0, 100, 300, 600]);
});

test("a failure that cannot pass, or the last retry's, is thrown", async () => {
  let tries = 0;
  const fail = (error: Error) => async () => {
    tries++;
    throw error;
  };
  await expect(retry(fail(new Error("a defect")), { waitsMs: [1] })).rejects.toThrow("a defect");
  expect(tries).toBe(1);
  const all = retry(fail(busy), { waitsMs: [1, 1] });
  all.catch(() => {});
  await vi.advanceTimersByTimeAsync(10);
  await expect(all).rejects.toBe(busy);
  expect(tries).toBe(4);
  await expect(retry(fail(busy), { waitsMs: [1], mayPass: () => false })).rejects.toBe(busy);
});

test("an abort ends a wait, or a pause, with its reason", async () => {
  const giveUp = new AbortController();
  const reason = new Error("enough");
  const waiting = retry(() => Promise.reject(busy), { waitsMs: [60_000], signal: giveUp.signal });
  const pausing = pause(60_000, giveUp.signal);
  const ended = Promise.allSettled([waiting, pausing]);
  await vi.advanceTimersByTimeAsync(10);
  giveUp.abort(reason);
  expect(await ended).toEqual([
    { status: "rejected", reason },
    { status: "rejected", reason },
  ]);
  await expect(pause(1, giveUp.signal)).rejects.toBe(reason);
});
