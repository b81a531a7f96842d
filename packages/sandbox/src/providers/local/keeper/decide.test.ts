import { describe, expect, test } from "vitest";
import { decideStop, isDiskLookDue } from "./decide.ts";

describe("whether a sandbox's disk is looked at", () => {
  const last = { at: 0, tookMs: 2000, writtenBytes: 0 };
  const mebibyte = 1024 * 1024;
  test.each<[string, number, number, boolean]>([
    ["nothing was written", 0, 30_000, false],
    ["some was, but the last look was slow", 100, 5000, false],
    ["some was, and it has rested", 100, 20_000, true],
    ["a quarter of the limit was, rested or not", 256, 1, true],
    ["nothing is known to have been for a long time", 0, 60_000, true],
  ])("%s", (_, writtenMb, nowMs, due) => {
    expect(isDiskLookDue(last, writtenMb * mebibyte, 1024 * mebibyte, nowMs)).toBe(due);
  });
});

describe("whom to stop when less is free than is to stay free", () => {
  const gibibyte = 1024 ** 3;
  test.each<[string, number[], number, number | null]>([
    ["nobody, when nobody writes", [0, 0], 0, null],
    ["nobody, when there is nobody", [], 0, null],
    ["nobody, when each has written little and half of it is left", [2 ** 23, 2 ** 20], gibibyte - 1, null],
    ["who has written most", [2 ** 20, 2 ** 30, 2 ** 25], gibibyte - 1, 2 ** 30],
    ["who has written as little, when less than half of it is left", [0, 2 ** 23], gibibyte / 2 - 1, 2 ** 23],
    ["nobody for what it takes to start", [2 ** 20], 0, null],
    ["nobody for what others than sandboxes write", [0, -4096], 0, null],
  ])("%s", (_, grown, freeBytes, expected) => {
    const writers = grown.map((grownBytes) => ({ grownBytes }));
    expect(decideStop(writers, freeBytes, gibibyte)?.grownBytes ?? null).toBe(expected);
  });
});
