import { expect, test } from "vitest";
import { errorMessage, refusal, retryDelayMs } from "./retry.ts";

const retries = { tries: 4, baseMs: 100, maxMs: 1000, maxRetryAfterMs: 5000 };
const endpoint = { provider: "test", baseUrl: "", dialects: ["chat"], key: undefined, keyVariable: undefined } as const;
const nowMs = Date.UTC(2026, 10, 16);

test("waits double up to a limit, and differ by up to half", () => {
  const wait = (number: number, random: number) =>
    retryDelayMs(retries, { number, retryAfter: undefined, nowMs }, random);
  expect([1, 2, 3, 4, 5, 50].map((number) => wait(number, 1))).toEqual([100, 200, 400, 800, 1000, 1000]);
  expect(wait(1, 0)).toBe(50);
});

test.each([
  ["2", 2000],
  ["0", 0],
  ["3600", 5000],
  ["Mon, 16 Nov 2026 00:00:03 GMT", 3000],
  ["Sun, 15 Nov 2026 00:00:00 GMT", 0],
  ["soon", 100],
])("Retry-After: %s is a wait of %i ms", (retryAfter, expected) => {
  expect(retryDelayMs(retries, { number: 1, retryAfter, nowMs }, 1)).toBe(expected);
});

test.each([
  ['{"error":{"message":"too long"}}', "too long"],
  ['{"type":"error","error":{"type":"x","message":"no"}}', "no"],
  ['{"error":"plain"}', "plain"],
  ['{"message":"here"}', "here"],
  ["null", "null"],
  ["<html>Bad gateway</html>", "<html>Bad gateway</html>"],
  ["", ""],
])("the words of the error body %j are found", (body, expected) => {
  expect(errorMessage(body)).toBe(expected);
});

test.each([
  ["there is no such model [unknown_model]", "test answered 404: there is no such model"],
  ["[budget_exhausted] of [things] [internal]", "test answered 404: of [things]"],
  ["[unknown_model]", "test answered 404"],
])("an endpoint that says %j does not say our codes", (message, expected) => {
  expect(refusal(endpoint, 404, message)).toMatchObject({ code: "unknown_model", message: expected });
});
