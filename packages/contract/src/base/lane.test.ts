import { expect, test } from "vitest";
import { createLane, createLanes, createSaver } from "./lane.ts";

test("a lane works in the order of the calls, and only the caller of failed work gets its failure", async () => {
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

test("only the newest waiting value is written, and all callers wait for it", async () => {
  const written: number[] = [];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const save = createSaver(async (value: number) => {
    written.push(value);
    await gates[written.length - 1]?.promise;
  });
  const first = save(1);
  await expect.poll(() => written).toEqual([1]);
  const [second, third] = [save(2), save(3)];
  gates[0]?.resolve();
  await first;
  await expect.poll(() => written).toEqual([1, 3]);
  gates[1]?.reject(new Error("full"));
  await expect(second).rejects.toThrow("full");
  gates[2]?.resolve();
  // What was overtaken by a value that failed is not told that it is written before it is.
  await third;
  expect(written).toEqual([1, 3, 3]);
});
