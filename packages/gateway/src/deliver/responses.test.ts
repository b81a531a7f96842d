import type { ErrorCode } from "@slipway/contract";
import { expect, test } from "vitest";
import { createResponses } from "./responses.ts";

/** Notes responses of one unit of time each, by their code or as complete; tells whether they were too many. */
async function gaveUpAfter(...ends: readonly (ErrorCode | "complete")[]): Promise<boolean> {
  const responses = createResponses();
  for (const [at, end] of ends.entries()) {
    if (end === "complete") responses.note({ end, code: undefined, at: at + 1 }, at);
    else responses.note({ end: "failed", code: end, at: at + 1 }, at);
  }
  return await Promise.race([responses.gaveUp.then(() => true), Promise.resolve(false).then(() => false)]);
}

test("the third failure of the models in a row is one too many", async () => {
  expect(await gaveUpAfter("stream_truncated", "model_overloaded")).toBe(false);
  expect(await gaveUpAfter("stream_truncated", "model_overloaded", "model_timeout")).toBe(true);
});

test("an answer in between begins the count anew, and what is no failure of a model does not count", async () => {
  expect(await gaveUpAfter("model_timeout", "model_timeout", "complete", "model_timeout")).toBe(false);
  expect(await gaveUpAfter("aborted", "budget_exhausted", "model_refused", "model_timeout")).toBe(false);
});

test("requests that fail at once count as one", async () => {
  const responses = createResponses();
  let gaveUp = false;
  void responses.gaveUp.then(() => {
    gaveUp = true;
  });
  for (let at = 10; at < 20; at++) responses.note({ end: "truncated", code: "stream_truncated", at }, 0);
  await Promise.resolve();
  expect(gaveUp).toBe(false);
  expect(responses.lastFailure).toMatchObject({ at: 19 });
});

test("agents that fail in turns are too many as soon as one would be", async () => {
  const responses = createResponses();
  // Of two agents, each begins anew when it has failed, while the other one is under way.
  for (const at of [10, 15, 20, 25]) responses.note({ end: "failed", code: "model_timeout", at }, at - 10);
  const first = await Promise.race([responses.gaveUp, Promise.resolve()]);
  responses.note({ end: "failed", code: "model_timeout", at: 30 }, 20);
  expect([first, await responses.gaveUp]).toMatchObject([undefined, { at: 30 }]);
});

test("what the run's end breaks off does not hide how the last answer ended", () => {
  const responses = createResponses();
  responses.note({ end: "truncated", code: "stream_truncated", at: 1 }, 0);
  responses.note({ end: "cut", code: "run_ended", at: 2 }, 0);
  expect(responses.last).toMatchObject({ code: "stream_truncated" });
});

test.each([
  ["truncated", "stream_truncated"],
  ["cut", "budget_exhausted"],
] as const)("an answer that was under way does not hide that another one was %s by %s", (end, code) => {
  const responses = createResponses();
  responses.note({ end, code, at: 10 }, 0);
  responses.note({ end: "complete", code: undefined, at: 12 }, 9);
  expect(responses.last).toMatchObject({ code });
  responses.note({ end: "complete", code: undefined, at: 20 }, 12);
  expect(responses.last).toMatchObject({ end: "complete" });
});

test("what was lost before the run was opened again counts until a model answers", () => {
  const responses = createResponses({ end: "truncated", code: "model_unreachable", at: 0 });
  expect(responses.lastFailure).toMatchObject({ code: "model_unreachable" });
  responses.note({ end: "cut", code: "aborted", at: 1 }, 0);
  expect(responses.lastFailure).toMatchObject({ code: "model_unreachable" });
  responses.note({ end: "complete", code: undefined, at: 2 }, 1);
  expect(responses.lastFailure).toBeUndefined();
});

test("the last failure stays known after an answer", () => {
  const responses = createResponses();
  responses.note({ end: "failed", code: "model_rate_limited", at: 1 }, 0);
  responses.note({ end: "complete", code: undefined, at: 2 }, 1);
  expect(responses.last).toMatchObject({ end: "complete" });
  expect(responses.lastFailure).toMatchObject({ code: "model_rate_limited" });
});
