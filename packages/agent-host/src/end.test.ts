import process from "node:process";
import { type End, type EndReason, type ErrorCode, endAs, SlipwayError } from "@slipway/contract";
import { expect, it, onTestFinished, vi } from "vitest";
import { endOf } from "./end.ts";

interface Seen {
  readonly earlier?: ErrorCode;
  readonly refused?: boolean;
  readonly ranOut?: boolean;
  readonly hadUnpayable?: boolean;
}
type Ending = "complete" | "truncated" | "cut" | "failed";

/**
 * How a run ends whose runner tells of one end, and whose gateway saw its last response end like this, and an earlier one
 * fail.
 */
async function endAfter(
  reason: EndReason,
  end: Ending,
  code?: ErrorCode,
  { earlier, refused = false, ranOut = false, hadUnpayable = false }: Seen = {},
) {
  const exec = { wait: () => new Promise<never>(() => {}), kill: async () => {} };
  const open = {
    ended: Promise.resolve(endAs(reason, "told")),
    fail: async () => {},
    lastResponse: () => ({ end, code, refused, at: 0 }),
    lastFailure: () => (earlier === undefined ? undefined : ({ end: "failed", code: earlier, at: 0 } as const)),
    ranOut: async () => ranOut,
    hadUnpayable: () => hadUnpayable,
    gaveUp: new Promise<never>(() => {}),
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
  expect(await endAfter("completed", end, code, { ranOut: true })).toEqual(
    endAs(reason, "the model's last answer was cut off"),
  );
});

it.each([
  ["complete", undefined],
  ["cut", "aborted"],
  ["failed", "model_overloaded"],
] as const)("success after an answer that was %s by %s remains a success", async (end, code) => {
  expect(await endAfter("completed", end, code)).toEqual(endAs("completed", "told"));
});

it("a refusal that an agent reports as a cut is a refusal", async () => {
  expect(await endAfter("truncated", "complete", undefined, { refused: true })).toEqual(endAs("refused", "told"));
});

it("the gateway corrects how a model failed, and no other end", async () => {
  expect(await endAfter("crashed", "failed", "model_rate_limited")).toEqual(endAs("rate_limited", "told"));
  expect(await endAfter("looping", "truncated", "stream_truncated")).toEqual(endAs("looping", "told"));
});

it.each(["network", "overloaded", "rate_limited"] as const)(
  "%s is not taken from an agent whose models have not failed",
  async (reason) => {
    expect(await endAfter(reason, "complete")).toEqual(
      endAs("crashed", `the agent ended as ${reason}, but no model has failed: told`),
    );
    expect(await endAfter(reason, "cut", "aborted")).toMatchObject({ reason: "crashed" });
    expect(await endAfter(reason, "complete", undefined, { earlier: "model_rate_limited" })).toMatchObject({
      reason: "rate_limited",
    });
  },
);

it("an agent whose run has money left cannot end as budget", async () => {
  expect(await endAfter("budget", "complete", undefined, { ranOut: true })).toMatchObject({ reason: "budget" });
  expect(await endAfter("budget", "complete")).toEqual(
    endAs("crashed", "the agent ended as budget, but its budget is not used up: told"),
  );
});

it("budget becomes truncated when a request was refused for money but the run has money left", async () => {
  const hadUnpayable = true;
  expect(await endAfter("budget", "complete", undefined, { hadUnpayable })).toEqual(endAs("truncated", "told"));
  expect(await endAfter("budget", "complete", undefined, { hadUnpayable, ranOut: true })).toMatchObject({
    reason: "budget",
  });
});

it("a released run does not wait for its balance", async () => {
  const letGo = new AbortController();
  const exec = { wait: () => new Promise<never>(() => {}), kill: async () => {} };
  const open = {
    ...silentRun(0),
    ended: Promise.resolve(endAs("budget", "told")),
    ranOut: (signal?: AbortSignal) =>
      new Promise<never>((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        letGo.abort(new SlipwayError("aborted", "let go of"));
      }),
  };
  const runner = { first: exec, restart: async () => exec };
  const { ended } = endOf({ runner, open, limits, signal: letGo.signal });
  await expect(ended).rejects.toMatchObject({ code: "aborted" });
});

it("an answer that the budget has cut ends the run as budget, whatever the agent reports", async () => {
  const ranOut = true;
  expect(await endAfter("truncated", "cut", "budget_exhausted", { ranOut })).toMatchObject({ reason: "budget" });
});

it.each(["completed", "crashed", "truncated"] as const)(
  "%s after an answer that was cut while the run has money left is truncated",
  async (reason) => {
    expect(await endAfter(reason, "cut", "budget_exhausted")).toMatchObject({ reason: "truncated" });
  },
);

const limits = { totalMs: 60_000, graceMs: 60_000 };
const overloaded = { end: "failed", code: "model_overloaded", at: 0 } as const;

/** A run whose runner says nothing, whose end can not be kept for so many tries, and whose models fail like this, if at all. */
function silentRun(failedTries: number, failure?: typeof overloaded) {
  const ended = Promise.withResolvers<End>();
  let left = failedTries;
  return {
    ended: ended.promise,
    async fail(reason: EndReason, message: string) {
      if (left-- > 0) throw new SlipwayError("database_busy", "others write");
      ended.resolve(endAs(reason, message));
    },
    lastResponse: () => failure,
    lastFailure: () => failure,
    ranOut: async () => false,
    hadUnpayable: () => false,
    gaveUp: failure === undefined ? new Promise<never>(() => {}) : Promise.resolve(failure),
  };
}

function followed(open: ReturnType<typeof silentRun>) {
  const exec = { wait: () => new Promise<never>(() => {}), kill: async () => {} };
  const runner = { first: exec, restart: async () => exec };
  return endOf({ runner, open, limits, signal: new AbortController().signal });
}

it("a run whose models fail repeatedly ends with their failure", async () => {
  const { ended } = followed(silentRun(0, overloaded));
  expect(await ended).toEqual(endAs("overloaded", "the model failed repeatedly"));
});

it.each([
  ["overloaded", overloaded, 0],
  ["timeout", undefined, limits.totalMs + limits.graceMs],
  ["cancelled", undefined, limits.graceMs],
] as const)("a run that cannot be ended as %s at once is ended later", async (reason, failure, afterMs) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const following = followed(silentRun(3, failure));
  if (reason === "cancelled") following.cancelled();
  await vi.advanceTimersByTimeAsync(afterMs + 10_000);
  expect(await following.ended).toMatchObject({ reason });
});

it("a run that cannot be ended for now gives one warning", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  const { ended } = followed(silentRun(3, overloaded));
  await vi.advanceTimersByTimeAsync(10_000);
  await ended;
  expect(warned.mock.calls).toEqual([["cannot end a run as overloaded yet: others write"]]);
});

it.each([new TypeError("a defect"), new SlipwayError("invalid_settings", "for good")])(
  "what does not pass is not tried again: %s",
  async (error) => {
    const fail = vi.fn(() => Promise.reject(error));
    await expect(followed({ ...silentRun(0, overloaded), fail }).ended).rejects.toBe(error);
    expect(fail).toHaveBeenCalledOnce();
  },
);

it("a run whose runner keeps dying is ended later if its end cannot be stored at once", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const exec = { wait: async () => ({}) as never, kill: async () => {} };
  const runner = { first: exec, restart: async () => exec };
  const { ended } = endOf({ runner, open: silentRun(3), limits, signal: new AbortController().signal });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await ended).toMatchObject({ reason: "runner_lost" });
});
