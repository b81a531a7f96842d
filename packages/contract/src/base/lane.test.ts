import { expect, test } from "vitest";
import { createLane, createLanes } from "./lane.ts";

test("work in a lane is done in the order of the calls, and a failure is its caller's alone", async () => {
  const lane = createLane();
  const done: number[] = [];
  const gate = Promise.withResolvers<void>();
  const first = lane(async () => {
    await gate.promise;
    done.push(1);
    throw new Error("one");
  });
  const second = lane(async () => done.push(2));
  await Promise.resolve();
  expect(done).toEqual([]);
  gate.resolve();
  await expect(first).rejects.toThrow("one");
  expect(await second).toBe(2);
});

test("lanes of different keys do not wait for each other", async () => {
  const lanes = createLanes<string>();
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const slow = lanes.run("a", () => gate.promise);
  const behind = lanes.run("a", async () => done.push("a"));
  await lanes.run("b", async () => done.push("b"));
  expect(done).toEqual(["b"]);
  const settled = lanes.settled().then(() => done.push("settled"));
  gate.reject(new Error("no"));
  await expect(slow).rejects.toThrow("no");
  await behind;
  await settled;
  expect(done).toEqual(["b", "a", "settled"]);
});
