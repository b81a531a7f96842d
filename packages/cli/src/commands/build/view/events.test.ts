import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { eventText, type Told } from "./events.ts";
import { milestoneText } from "./milestones.ts";

test("a gate that has passed says what is to be looked at, and one that fails leaves that to the rejection", () => {
  const findings = [
    { gate: "tests", text: "Only the exit code says." },
    { gate: "tests", text: "Tests are changed." },
  ];
  const measured = { score: null, parts: [], artefacts: [], costMicroUsd: 0 };
  const ended = (verdict: "passed" | "failed", found = findings) =>
    eventText({
      type: "gate.ended",
      data: { ...measured, run: 3, task: "cart", gate: "tests", verdict, durationMs: 2000, findings: found },
    });
  expect(ended("passed", [])).toBe("cart: tests (3) passes after 2s");
  expect(ended("passed")).toBe(
    "cart: tests (3) passes after 2s. To look at: Only the exit code says. Tests are changed.",
  );
  expect(ended("failed")).toBe("cart: tests (3) fails after 2s");
});

const opened = (asks: "judge" | "user") => ({
  type: "dispute.opened" as const,
  data: { candidate: newId("cnd"), task: "cart", dispute: 2, at: { criterion: "adds", check: 0, step: 3 }, asks },
});
const settled = (wrong: "app" | "check" | null, replaced = false) => ({
  type: "dispute.settled" as const,
  data: { dispute: 2, round: 1, wrong, because: "Nobody\nasked for that.", advice: null, replaced },
});
const ruled = (wrong: "app" | "check") => ({
  type: "order.dispute" as const,
  data: { dispute: 2, wrong, because: "Nobody\u001b[2J asked for that." },
});

test.each<[string, Told, string]>([
  [
    "!",
    opened("judge"),
    "cart keeps failing one check of adds; a model decides whether the check is wrong (dispute 2)",
  ],
  [
    "!",
    opened("user"),
    "cart keeps failing one check of adds; you decide whether the check is wrong (dispute 2, see slipway disputes)",
  ],
  ["·", settled("app"), "the app is wrong (dispute 2): Nobody asked for that."],
  ["·", settled("check", true), "the check was wrong and is compiled anew (dispute 2): Nobody asked for that."],
  [
    "!",
    settled("check"),
    "the check is wrong, and you decide what follows (dispute 2, see slipway disputes): Nobody asked for that.",
  ],
  [
    "!",
    settled(null),
    "you decide whether the check is wrong (dispute 2, see slipway disputes): Nobody asked for that.",
  ],
])("%s what becomes of a dispute is said, and marked where it waits for the user: %j", (mark, event, text) => {
  expect(eventText(event)).toBe(text);
  expect(milestoneText(event, (_, plain) => plain)).toBe(`${mark} ${text}`);
});

test("a ruling is told as the user's own", () => {
  expect(eventText(ruled("app"))).toBe("you decided that the app is wrong (dispute 2): Nobody asked for that.");
  expect(eventText(ruled("check"))).toBe("you decided that the check is wrong (dispute 2): Nobody asked for that.");
});
