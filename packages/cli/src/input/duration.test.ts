import { expect, test } from "vitest";
import { formatDuration, parseDurationMs } from "./duration.ts";

test.each([
  ["90s", 90_000],
  ["20m", 1_200_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["500ms", 500],
  ["1h30m", 5_400_000],
  ["0.5s", 500],
])("%s is %i milliseconds", (text, expected) => {
  expect(parseDurationMs(text, "--x")).toBe(expected);
});

test.each(["", "5", "-5s", "5 s", "5y", "s", "1e3s", `${"9".repeat(20)}d`])("%j is refused as a duration", (text) => {
  expect(() => parseDurationMs(text, "--lifetime")).toThrow(/^--lifetime: /);
});

test.each([
  [0, "0ms"],
  [999, "999ms"],
  [59_400, "59s"],
  [60_000, "1m"],
  [5_400_000, "1h 30m"],
  [90_061_000, "1d 1h"],
])("%i milliseconds are shown as %s", (durationMs, expected) => {
  expect(formatDuration(durationMs)).toBe(expected);
});
