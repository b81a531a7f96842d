import { expect, onTestFinished, test, vi } from "vitest";
import { type CheckpointsOptions, createCheckpoints } from "./checkpoints.ts";

function openCheckpoints() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const made: string[] = [];
  const checkpoints = createCheckpoints({
    sandbox: { snapshot: async () => ({ id: "snp_1" }) },
    name: "list",
    everyMs: 3_600_000,
    made: async (_: string, phase: string) => void made.push(phase),
    warn: () => {},
  } as unknown as CheckpointsOptions);
  return { checkpoints, made };
}

test("a checkpoint waits until the run is quiet", async () => {
  const { checkpoints, made } = openCheckpoints();
  checkpoints.heard();
  checkpoints.wish("build");
  await vi.advanceTimersByTimeAsync(200);
  checkpoints.heard();
  checkpoints.wish("integrate");
  await vi.advanceTimersByTimeAsync(200);
  expect(made).toEqual([]);
  await vi.advanceTimersByTimeAsync(100);
  expect(made).toEqual(["integrate"]);
});

test("a run that is never quiet still gets its checkpoint, and a released one gets none", async () => {
  const { checkpoints, made } = openCheckpoints();
  checkpoints.wish("build");
  for (let times = 0; times < 25; times++) {
    checkpoints.heard();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(made).toEqual(["build"]);
  checkpoints.heard();
  checkpoints.wish("test");
  await checkpoints[Symbol.asyncDispose]();
  expect(made).toEqual(["build"]);
});
