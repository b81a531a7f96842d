import { expect, test } from "vitest";
import { createAccounting, listPrices, type Metered } from "./accounting.ts";

const sandbox: Metered = {
  sandboxId: "sb-1",
  name: "",
  tags: {},
  cpu: 1,
  memoryMib: 1024,
  gpu: null,
  startedAtMs: 1000,
  endedAtMs: null,
};

test("a running sandbox costs what it has cost so far, an ended one what it cost", () => {
  let nowMs = 2000;
  const ended = { ...sandbox, endedAtMs: 11_000, gpu: { type: "H100", count: 2 } };
  const accounting = createAccounting(
    listPrices,
    () => nowMs,
    () => [sandbox, ended],
  );
  // 39.42 for the core and 6.67 for the memory make 46.09 millionths a second.
  expect(accounting.usage().map(({ seconds, microUsd }) => [seconds, microUsd])).toEqual([
    [1, 47],
    [10, 22_401],
  ]);
  nowMs = 101_000;
  expect(accounting.total()).toEqual({ seconds: 110, microUsd: 4609 + 22_401 });
});

test("another price table", () => {
  const prices = { cpu: 0.000001, memoryGib: 0, gpu: { X: 0.000002 } };
  const accounting = createAccounting(
    prices,
    () => 4000,
    () => [{ ...sandbox, gpu: { type: "X", count: 1 } }],
  );
  expect(accounting.total()).toEqual({ seconds: 3, microUsd: 9 });
});
