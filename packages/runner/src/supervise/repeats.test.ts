import { expect, test } from "vitest";
import { createRepeatDetector } from "./repeats.ts";

/** How many calls of the sequence are made before it counts as a loop; undefined: never. */
function loopsAfter(maxRepeats: number, calls: Iterable<readonly [input: string, output: string]>): number | undefined {
  const detector = createRepeatDetector(maxRepeats);
  let made = 0;
  for (const [input, output] of calls) {
    made++;
    if (detector.isLooping({ name: "terminal", input, output })) return made;
  }
  return undefined;
}

function* cycle(length: number, total: number): Generator<readonly [string, string]> {
  for (let i = 0; i < total; i++) yield [`step ${i % length}`, "same"];
}

test.each([
  [1, 4],
  [2, 8],
  [3, 12],
])("a cycle of %i calls is a loop once it exceeds the limit", (length, calls) => {
  expect(loopsAfter(3, cycle(length, 100))).toBe(calls);
});

test("a cycle of four calls is no loop", () => {
  expect(loopsAfter(3, cycle(4, 100))).toBeUndefined();
});

test("the same call with another result is progress", () => {
  const polls = Array.from({ length: 100 }, (_, i) => ["cat log", `line ${i}`] as const);
  expect(loopsAfter(2, polls)).toBeUndefined();
});

test("other calls in between restart the count", () => {
  const calls = ["a", "a", "a", "b", "a", "a", "a"].map((input) => [input, "same"] as const);
  expect(loopsAfter(3, calls)).toBeUndefined();
});
