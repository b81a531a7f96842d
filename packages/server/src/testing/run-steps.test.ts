import type { RunnerEvent, TaskPhase } from "@slipway/contract";
import { expect, test } from "vitest";
import { repeatedSteps, stepsBefore, stepsOf } from "./run-steps.ts";

const phase = (name: TaskPhase, status: "begun" | "finished", round = 1): RunnerEvent => ({
  type: "phase",
  phase: name,
  status,
  round,
});
const ran = (command: "build" | "test", ok = true, at: TaskPhase = "test"): RunnerEvent => ({
  type: "command",
  phase: at,
  command,
  ok,
  durationMs: 1,
  output: "",
});
const committed = (digit: string): RunnerEvent => ({ type: "committed", commit: digit.repeat(40) });
const resumed: RunnerEvent = { type: "resumed", step: 1 };

test("a run that mends its work and goes through a second round repeats nothing", () => {
  const first = [committed("a"), phase("build", "finished"), ran("build"), ran("test", false)];
  const second = [committed("b"), ran("build"), ran("test"), phase("test", "finished"), phase("build", "finished", 2)];
  expect(repeatedSteps(stepsOf([...first, ...second]))).toEqual([]);
});

test("checks beside the work are no steps, however often they run", () => {
  const beside = [ran("test", false, "build"), ran("test", false, "build")];
  expect(stepsOf([committed("a"), ...beside])).toEqual([`committed ${"a".repeat(40)}`]);
});

test("only the last step before a kill may be told again", () => {
  const before = [committed("a"), ran("build"), ran("test")];
  expect(repeatedSteps(stepsOf([...before, resumed, ran("test"), phase("test", "finished")]))).toEqual([]);
  expect(repeatedSteps(stepsOf([...before, resumed, ran("build")]))).toEqual([`test 1: build on ${"a".repeat(40)}`]);
  expect(repeatedSteps(stepsOf([...before, ran("test")]))).toEqual([`test 1: test on ${"a".repeat(40)}`]);
});

test("what was finished before a checkpoint is known by the phase behind which it was made", () => {
  const steps = stepsOf([
    phase("initialise", "finished"),
    committed("a"),
    resumed,
    phase("build", "finished"),
    ran("test"),
  ]);
  expect(stepsBefore(steps, "build")).toEqual(["finished initialise 1", `committed ${"a".repeat(40)}`]);
  expect(stepsBefore(steps, "verify")).toEqual([]);
});
