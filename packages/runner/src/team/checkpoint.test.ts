import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { durableFile } from "../system/durable.ts";
import { makeWorkplace } from "../testing/workplace.ts";
import { openCheckpoint, type Progress } from "./checkpoint.ts";

const progress: Progress = {
  step: 3,
  spentMs: 12.5,
  stage: { name: "workers", round: 2, firstTask: 1 },
  board: { tasks: [{ id: 1, title: "One", details: "", status: "pending", result: "" }], notes: [] },
  mail: { letters: [], context: ["fact"], isInterrupted: false },
};

test("a saved checkpoint is found by the next runner", async () => {
  const { directory } = await makeWorkplace();
  const first = await openCheckpoint(directory);
  expect(first.found).toBeUndefined();
  await first.save(progress);
  await first.saveAgent("lead", { turn: "lead-1", state: { words: ["☃"] } });
  const second = await openCheckpoint(directory);
  expect(second.found).toEqual(progress);
  expect(await second.agent("lead")).toEqual({ turn: "lead-1", state: { words: ["☃"] } });
  expect(await second.agent("worker-1")).toBeUndefined();
});

test("of many saves only the latest remains", async () => {
  const { directory } = await makeWorkplace();
  const checkpoint = await openCheckpoint(directory);
  await Promise.all(Array.from({ length: 50 }, (_, step) => checkpoint.save({ ...progress, step })));
  expect((await openCheckpoint(directory)).found?.step).toBe(49);
  expect(await readdir(directory)).toEqual(["run.json"]);
});

test("an invalid checkpoint is refused and not changed", async () => {
  const { directory } = await makeWorkplace();
  await writeFile(join(directory, "run.json"), '{"step": -1}');
  await expect(openCheckpoint(directory)).rejects.toMatchObject({ code: "internal" });
});

test("a failed write rejects for everyone who waits for it", async () => {
  const file = durableFile("/proc/nowhere/file");
  const writes = await Promise.allSettled([file.write("a"), file.write("b"), file.write("c")]);
  expect(writes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
});
