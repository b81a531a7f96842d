import { expect, test } from "vitest";
import { parseStat } from "./process.ts";

const line = (state: string, threads: number) =>
  `71 (a ) name) ${state} 1 71 71 0 -1 4194560 1 0 0 0 9 2 0 0 20 0 ${threads} 0 7001840 0 0 0`;

test.each([
  ["R", 1, false],
  ["T", 12, false],
  ["Z", 1, true],
  ["Z", 12, false],
  ["X", 0, true],
])("a process in state %s with %i threads is a zombie: %s", (state, threads, zombie) => {
  expect(parseStat(line(state, threads))).toEqual({ pid: 71, startTime: "7001840", zombie });
});
