import { describe, expect, test } from "vitest";
import type { Level } from "../ports/work.ts";
import { escalate } from "./escalate.ts";
import { fingerprint } from "./fingerprint.ts";
import { beginTask, type FailedTry, type TaskState } from "./state.ts";
import { task } from "./testing.ts";

/** The levels that are tried, one after the other, until the task fails. */
function levels(errorOf: (attempt: number) => string, patternOf: (attempt: number) => string | null = () => null) {
  let state: TaskState = beginTask(task("a"));
  const tried: (Level | null)[] = [];
  for (let attempt = 1; ; attempt++) {
    tried.push(state.next.level);
    const failed: FailedTry = { ...state.next, error: errorOf(attempt) };
    const next = escalate(state, failed, patternOf(attempt));
    if (next === null) return tried;
    state = { ...state, failures: [...state.failures, failed], next };
  }
}

describe("escalation", () => {
  test("tries 3 direct fixes, 3 deep ones, 2 rewrites and 1 rebuild", () => {
    expect(levels((attempt) => `error ${attempt}`)).toEqual([null, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
  });

  test("leaves a level at which the same error is back", () => {
    expect(levels(() => "the same")).toEqual([null, 1, 1, 2, 2, 3, 3, 4]);
    expect(levels((attempt) => (attempt % 2 ? "one" : "other"))).toEqual([null, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
  });

  test("tries each known fix once, before other fixes", () => {
    expect(
      levels(
        (attempt) => `error ${attempt}`,
        () => "known",
      ),
    ).toEqual([null, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
  });

  test("tries a limited number of known fixes", () => {
    const tried = levels((attempt) => `error ${attempt}`, String);
    expect(tried).toEqual([null, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
  });

  test("rebuilds from main and fixes in place", () => {
    const state = beginTask(task("a"));
    const failedAt = (level: Level) => escalate(state, { level, pattern: null, error: "x" }, null)?.from;
    expect([failedAt(1), failedAt(2), failedAt(3)]).toEqual(["last-attempt", "last-attempt", "last-attempt"]);
    const twice = { ...state, failures: [{ level: 3, pattern: null, error: "x" }] as const };
    expect(escalate(twice, { level: 3, pattern: null, error: "y" }, null)).toMatchObject({ level: 4, from: "main" });
  });
});

describe("a fingerprint", () => {
  test.each([
    ["numbers", "expected 3 to be 4 (12 ms)", "expected 30 to be 41 (7 ms)"],
    ["directories", "Error in /tmp/run-1/src/app.ts:3", "Error in /home/other/x/src/app.ts:9"],
    ["hashes", "chunk 3fa94bc1 is missing", "chunk 99aa01ffee is missing"],
    ["where it was thrown", "TypeError: x\n    at a (a.js:1)\n", "TypeError: x\n  at b (b.js:2)\n  at c"],
  ])("leaves out %s", (_, one, other) => {
    expect(fingerprint(one)).toBe(fingerprint(other));
  });

  test("differs between errors and stays short", () => {
    expect(fingerprint("x is not a function")).not.toBe(fingerprint("y is not a function"));
    expect(fingerprint("x".repeat(1_000_000)).length).toBeLessThanOrEqual(300);
  });
});
