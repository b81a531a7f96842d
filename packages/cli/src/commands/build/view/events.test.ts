import { expect, test } from "vitest";
import { eventText } from "./events.ts";

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
