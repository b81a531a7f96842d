import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

function setUp(most: number) {
  const slots = createSlots(most);
  const entered: string[] = [];
  const take = (name: string, signal?: AbortSignal) => slots.take(name, signal).then(() => void entered.push(name));
  return { slots, entered, take };
}

test("whoever asks first is first, and no more than may run at once", async () => {
  const { slots, entered, take } = setUp(2);
  const all = ["a", "b", "c", "d"].map((name) => take(name));
  await setImmediate();
  expect(entered).toEqual(["a", "b"]);
  slots.release("b");
  slots.release("b");
  await setImmediate();
  expect(entered).toEqual(["a", "b", "c"]);
  slots.release("a");
  await Promise.all(all);
});

test("a caller that gives up leaves its place to the next", async () => {
  const { slots, entered, take } = setUp(1);
  await take("a");
  const controller = new AbortController();
  const given = take("b", controller.signal);
  const next = take("c");
  controller.abort();
  await expect(given).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringMatching(/MODAL_MAX_CONCURRENT/),
  });
  slots.release("a");
  await next;
  expect(entered).toEqual(["a", "c"]);
  await expect(take("d", AbortSignal.abort())).rejects.toMatchObject({ code: "aborted" });
});

test("what runs already counts", async () => {
  const { slots, entered, take } = setUp(1);
  slots.occupy("old");
  const waiting = take("new");
  await setImmediate();
  expect(entered).toEqual([]);
  slots.release("old");
  await waiting;
});
