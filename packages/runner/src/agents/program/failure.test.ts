import { type ErrorCode, errorTable } from "@slipway/contract";
import { expect, it } from "vitest";
import { failureEvent } from "./failure.ts";

it("the gateway's code counts more than the agent's class and the status", () => {
  const message = 'API Error: 502 {"error":{"message":"cut off [stream_truncated]"}}';
  expect(failureEvent({ status: 502, kind: "overloaded", message })).toEqual({
    type: "error",
    kind: "truncated",
    message,
  });
});

it("without a code the agent's class counts, then the status", () => {
  expect(failureEvent({ status: 500, kind: "network", message: "" })).toMatchObject({ kind: "network" });
  expect(failureEvent({ status: 529, message: "" })).toMatchObject({ kind: "overloaded" });
  expect(failureEvent({ status: 429, message: "" })).toMatchObject({ kind: "rate_limited" });
  expect(failureEvent({ status: 403, message: "" })).toMatchObject({ kind: "auth" });
  expect(failureEvent({ status: 404, message: "" })).toMatchObject({ kind: "model_not_found" });
  expect(failureEvent({ status: 504, message: "" })).toMatchObject({ kind: "network" });
  expect(failureEvent({ status: 413, message: "" })).toMatchObject({ kind: "invalid_request" });
  expect(failureEvent({ message: "[not_a_code]" })).toMatchObject({ kind: "internal" });
});

it("an empty budget and a refusal are no failures", () => {
  expect(failureEvent({ message: "spent [budget_exhausted]" })).toEqual({ type: "done", outcome: "budget", text: "" });
  expect(failureEvent({ status: 402, message: "" })).toMatchObject({ outcome: "budget" });
  expect(failureEvent({ message: "no [answer_refused]" })).toMatchObject({ outcome: "refused" });
});

it("every refusal of a model call that the gateway knows has a kind", () => {
  const codes = (Object.keys(errorTable) as ErrorCode[]).filter((code) =>
    /^(model|stream|cassette|run_token|role|unknown_(model|price))/.test(code),
  );
  expect(codes.length).toBeGreaterThan(8);
  for (const code of codes) expect(failureEvent({ message: `x [${code}]` })).not.toMatchObject({ kind: "internal" });
});

it("a long message is cut", () => {
  const event = failureEvent({ message: "x".repeat(10_000) });
  expect(event.type === "error" && event.message.length).toBe(4096);
});
