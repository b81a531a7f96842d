import type { ErrorCode, RunEndReason } from "@slipway/contract";
import { expect, it } from "vitest";
import { endOf } from "./end.ts";

type Ending = "complete" | "truncated" | "cut" | "failed";

/** How a run ends whose runner tells of one end, and whose gateway saw its last response end like this. */
async function endAfter(reason: RunEndReason, end: Ending, code?: ErrorCode, refused = false) {
  const exec = { wait: () => new Promise<never>(() => {}), kill: async () => {} };
  const open = {
    ended: Promise.resolve({ reason, message: "told" }),
    fail: async () => {},
    lastResponse: () => ({ end, code, refused, at: 0 }),
  };
  const limits = { totalMs: 1000, graceMs: 1000 };
  const runner = { first: exec, restart: async () => exec };
  return await endOf({ runner, open, limits, signal: new AbortController().signal }).ended;
}

it.each([
  ["truncated", "stream_truncated", "truncated"],
  ["truncated", "model_timeout", "network"],
  ["truncated", "invalid_answer", "protocol"],
  ["truncated", "internal", "truncated"],
  ["cut", "budget_exhausted", "budget"],
] as const)("success after an answer that was %s by %s is %s", async (end, code, reason) => {
  expect(await endAfter("completed", end, code)).toEqual({ reason, message: "the model's last answer was cut off" });
});

it.each([
  ["complete", undefined],
  ["cut", "aborted"],
  ["failed", "model_overloaded"],
] as const)("success after an answer that was %s by %s stays one", async (end, code) => {
  expect(await endAfter("completed", end, code)).toEqual({ reason: "completed", message: "told" });
});

it("a refusal that an agent takes for a cut is one all the same", async () => {
  expect(await endAfter("truncated", "complete", undefined, true)).toEqual({ reason: "refused", message: "told" });
});

it("the gateway knows better than an agent how a model failed, and nothing of other ends", async () => {
  expect(await endAfter("crashed", "failed", "model_rate_limited")).toEqual({
    reason: "rate_limited",
    message: "told",
  });
  expect(await endAfter("looping", "truncated", "stream_truncated")).toEqual({ reason: "looping", message: "told" });
});
