import { expect, test } from "vitest";
import {
  type AfterEnd,
  afterEnd,
  claimedEndSchema,
  type EndParty,
  type EndReason,
  endAs,
  endSchema,
  endText,
} from "./end.ts";

const followed: Record<EndReason, readonly [by: EndParty, next: AfterEnd]> = {
  auth: ["host", "wait"],
  budget: ["host", "pay"],
  cancelled: ["host", "retry"],
  checks_failed: ["agent", "retry"],
  completed: ["agent", "retry"],
  conflict_left: ["agent", "retry"],
  crashed: ["agent", "retry"],
  disk_full: ["agent", "retry"],
  flooded: ["agent", "retry"],
  internal: ["host", "retry"],
  invalid_request: ["agent", "retry"],
  looping: ["agent", "retry"],
  max_steps: ["agent", "retry"],
  merged: ["host", "done"],
  model_not_found: ["host", "wait"],
  network: ["model", "wait"],
  overloaded: ["model", "wait"],
  protocol: ["agent", "retry"],
  rate_limited: ["model", "wait"],
  refused: ["model", "retry"],
  returned_too_often: ["agent", "retry"],
  runner_lost: ["host", "respawn"],
  satisfied: ["host", "done"],
  session_lost: ["agent", "retry"],
  setup_failed: ["host", "retry"],
  stuck: ["agent", "retry"],
  tampered: ["agent", "retry"],
  timeout: ["agent", "retry"],
  truncated: ["host", "wait"],
  unavailable: ["host", "wait"],
};

test.each(Object.entries(followed) as [EndReason, (typeof followed)[EndReason]][])(
  "%s is the doing of, and is followed by: %s",
  (reason, [by, next]) => {
    const end = endAs(reason, "why");
    expect(end).toEqual({ reason, by, message: "why" });
    expect(afterEnd(end)).toBe(next);
    expect(endSchema.parse(end)).toEqual(end);
  },
);

test("three ends make an attempt wait for its model without limit", () => {
  const waits = Object.entries(followed).filter(([, [by, next]]) => by === "model" && next === "wait");
  expect(waits.map(([reason]) => reason)).toEqual(["network", "overloaded", "rate_limited"]);
});

test("the text of an end has its reason, and its message if there is one", () => {
  expect(endText(endAs("timeout"))).toBe("timeout");
  expect(endText(endAs("timeout", "too long"))).toBe("timeout: too long");
});

test("a sandbox cannot claim an end that only the host knows, or whose doing an end is", () => {
  const refused = Object.keys(followed).filter(
    (reason) => !claimedEndSchema.safeParse({ reason, message: "" }).success,
  );
  expect(refused).toEqual(["disk_full", "flooded", "merged", "runner_lost", "satisfied", "tampered", "unavailable"]);
  expect(claimedEndSchema.safeParse(endAs("completed")).success).toBe(false);
});
