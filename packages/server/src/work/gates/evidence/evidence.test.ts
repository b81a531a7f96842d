import { describe, expect, test } from "vitest";
import { compareEvidence, type TestRun } from "./evidence.ts";

type Told = readonly [file: string, name: string, outcome?: TestRun["outcome"]];
const evidence = (...tests: readonly Told[]) => ({
  tests: tests.map(([file, name, outcome = "passed"]) => ({ file, name, outcome })),
  unread: [],
});
const compared = (before: readonly Told[], after: readonly Told[]) => {
  const { lost, replaced, failed } = compareEvidence(evidence(...before), evidence(...after));
  return {
    lost: lost.map(({ name, how }) => `${name} ${how}`),
    replaced: replaced.map(({ name }) => name),
    failed: failed.map(({ name }) => name),
  };
};
const nothing = { lost: [], replaced: [], failed: [] };
const [a, b, c] = [
  ["x", "a"],
  ["x", "b"],
  ["y", "c"],
] as const;

describe("against what passed before, a run has lost", () => {
  test.each<[string, readonly Told[], readonly Told[], Partial<ReturnType<typeof compared>>]>([
    ["nothing, when all of it passes", [a, b, c], [c, b, a], {}],
    ["nothing, when there is more", [a], [a, b, c], {}],
    ["nothing, where nothing was", [], [a], {}],
    ["a test that is gone", [a, b], [a], { lost: ["b gone"] }],
    ["all, when nothing ran", [a, c], [], { lost: ["a gone", "c gone"] }],
    ["a test that is left out", [a, b], [a, ["x", "b", "skipped"]], { lost: ["b skipped"] }],
    ["one that is left out, whatever else is new", [a], [["x", "a", "skipped"], b], { lost: ["a skipped"] }],
    ["a test that fails", [a], [["x", "a", "failed"]], { lost: ["a failed"] }],
    ["nothing, when it was left out before", [["x", "a", "skipped"]], [], {}],
    ["nothing, when it is in another file", [a, c], [["z", "a"], c], {}],
    ["one of several of the same name", [a, a, a], [a, a], { lost: ["a gone"] }],
    ["one of the same name in two files", [a, ["y", "a"]], [["y", "a"]], { lost: ["a gone"] }],
    ["nothing, when another has its place in its file", [a, b], [a, ["x", "d"]], { replaced: ["b"] }],
    ["it, when another has come in another file", [a, b], [a, ["y", "d"]], { lost: ["b gone"] }],
    ["both, when one has come for two", [a, b], [["x", "d"]], { lost: ["a gone", "b gone"] }],
  ])("%s", (_, before, after, found) => {
    expect(compared(before, after)).toEqual({ ...nothing, ...found });
  });
});

test("a new test that fails is told, and one that has failed before is not", () => {
  expect(compared([], [["x", "a", "failed"]])).toEqual({ ...nothing, failed: ["a"] });
  expect(compared([["x", "a", "failed"]], [["x", "a", "failed"]])).toEqual(nothing);
});
