import { type AgentEvent, hasCode, type RunnerEvent, runChannel, runnerEventSchema } from "@slipway/contract";
import { expect, test } from "vitest";
import { fit } from "./fit.ts";
import { note } from "./testing/events.ts";

const agentEvent = (event: AgentEvent): RunnerEvent => ({ type: "agent", agent: "lead", event });
const huge = "x".repeat(3_000_000);

test("an event that fits is unchanged", () => {
  expect(fit(note("short"))).toEqual(note("short"));
});

test.each<[string, RunnerEvent]>([
  ["a note", note(huge)],
  ["a tool's output", agentEvent({ type: "tool", phase: "end", id: "1", name: huge, kind: "other", output: huge })],
  ["an answer", agentEvent({ type: "ended", end: { reason: "completed", message: huge } })],
  ["a plan", agentEvent({ type: "plan", entries: Array(1000).fill({ text: huge.slice(0, 5000), status: "pending" }) })],
  [
    "text of controls",
    agentEvent({ type: "permission", id: "1", tool: "\u0001".repeat(5000), input: "\u0001".repeat(70_000) }),
  ],
  ["an end", { type: "ended", end: { reason: "internal", message: huge } }],
])("%s that is too long is cut to what the host takes", (_, event) => {
  const fitted = fit(event);
  expect(runnerEventSchema.parse(fitted)).toEqual(fitted);
  expect(Buffer.byteLength(JSON.stringify(fitted))).toBeLessThan(runChannel.maxBodyBytes);
  expect(JSON.stringify(fitted)).toContain("… [cut]");
});

test("the given event is not modified", () => {
  const event = note(huge);
  fit(event);
  expect(event).toEqual(note(huge));
});

test("an invalid event is refused with the field's name", () => {
  const wrong = { type: "agent", agent: "", event: { type: "status", status: "idle" } } as const;
  expect(() => fit(wrong)).toThrow(/agent/);
  expect(() => fit({ type: "verdict" } as never)).toThrow();
  try {
    fit(wrong);
  } catch (error) {
    expect(hasCode(error, "event_rejected")).toBe(true);
  }
});
