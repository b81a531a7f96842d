import { type ErrorCode, errorTable, maxEndCharacters } from "@slipway/contract";
import { expect, it } from "vitest";
import { failureEnd } from "./failure.ts";

it("the gateway's code takes precedence over the agent's class and the status", () => {
  const message = 'API Error: 502 {"error":{"message":"cut off [stream_truncated]"}}';
  expect(failureEnd({ status: 502, reason: "overloaded", message })).toEqual({
    reason: "truncated",
    message,
  });
});

it("without a code the agent's class counts, then the status", () => {
  expect(failureEnd({ status: 500, reason: "network", message: "" })).toMatchObject({ reason: "network" });
  expect(failureEnd({ status: 529, message: "" })).toMatchObject({ reason: "overloaded" });
  expect(failureEnd({ status: 429, message: "" })).toMatchObject({ reason: "rate_limited" });
  expect(failureEnd({ status: 403, message: "" })).toMatchObject({ reason: "auth" });
  expect(failureEnd({ status: 404, message: "" })).toMatchObject({ reason: "model_not_found" });
  expect(failureEnd({ status: 504, message: "" })).toMatchObject({ reason: "network" });
  expect(failureEnd({ status: 413, message: "" })).toMatchObject({ reason: "invalid_request" });
  expect(failureEnd({ message: "[not_a_code]" })).toMatchObject({ reason: "internal" });
});

it("an exhausted budget and a refused answer have their own reasons", () => {
  expect(failureEnd({ message: "spent [budget_exhausted]" })).toMatchObject({ reason: "budget" });
  expect(failureEnd({ status: 402, message: "" })).toMatchObject({ reason: "budget" });
  expect(failureEnd({ message: "no [answer_refused]" })).toMatchObject({ reason: "refused" });
});

it("every refusal of a model call that the gateway knows has a reason", () => {
  const codes = (Object.keys(errorTable) as ErrorCode[]).filter((code) =>
    /^(model|stream|cassette|run_token|role|unknown_(model|price))/.test(code),
  );
  expect(codes.length).toBeGreaterThan(8);
  for (const code of codes) expect(failureEnd({ message: `x [${code}]` })).not.toMatchObject({ reason: "internal" });
});

it("a long message is cut", () => {
  expect(failureEnd({ message: "x".repeat(100_000) }).message.length).toBe(maxEndCharacters);
});
