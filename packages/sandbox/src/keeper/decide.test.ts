import { newId } from "@slipway/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideIdle, endOf, nextDue, type Timing, type TimingMemory } from "./decide.ts";

const request = { idleMs: null, sleepingMs: 10_000, checkpointMs: null, expiringGraceMs: 60 };
const running: Timing = { state: "running", stateChangedAt: 1000, expiresAt: 5000, owedSnapshot: null, request };
const memory: TimingMemory = { toldEnd: null, checkIdleAt: 0, lastCheckpointAt: 1000 };

describe("what is due next", () => {
  test("the notice comes a grace period before the end", () => {
    expect(nextDue(running, memory)).toEqual({ at: 4940, action: "expiring" });
  });

  test("after the notice comes the end", () => {
    expect(nextDue(running, { ...memory, toldEnd: 5000 })).toEqual({ at: 5000, action: "expire" });
  });

  test("an end that was put off is told again", () => {
    expect(nextDue({ ...running, expiresAt: 9000 }, { ...memory, toldEnd: 5000 })).toEqual({
      at: 8940,
      action: "expiring",
    });
  });

  test("an end sooner than the grace period is told at once", () => {
    expect(nextDue({ ...running, expiresAt: 1010 }, memory)).toEqual({ at: 1000, action: "expiring" });
  });

  test("a sleeping sandbox ends after its sleeping time, not its lifetime", () => {
    const sleeping: Timing = { ...running, state: "sleeping" };
    expect(endOf(sleeping)).toBe(11_000);
    expect(nextDue(sleeping, { ...memory, toldEnd: 11_000 })).toEqual({ at: 11_000, action: "sleep_out" });
  });

  test("a sandbox whose sleep ran out leaves its snapshot at once, until nothing is owed", () => {
    const stopped: Timing = { ...running, state: "stopped" };
    expect(nextDue(stopped, memory)).toBeNull();
    expect(nextDue({ ...stopped, owedSnapshot: newId("snp") }, memory)).toEqual({ at: 1000, action: "keep_slept_out" });
  });

  test("checkpoints and idle checks come before the end", () => {
    const timing: Timing = { ...running, request: { ...request, idleMs: 500, checkpointMs: 300 } };
    expect(nextDue(timing, { ...memory, checkIdleAt: 1500 })).toEqual({ at: 1300, action: "checkpoint" });
    expect(nextDue(timing, { ...memory, checkIdleAt: 1200 })).toEqual({ at: 1200, action: "check_idle" });
  });

  test.each(["creating", "stopped", "error"] as const)("nothing is due for a sandbox that is %s", (state) => {
    expect(nextDue({ ...running, state }, memory)).toBeNull();
  });
});

describe("whether an idle sandbox sleeps", () => {
  test("work under way keeps it awake", () => {
    expect(decideIdle({ operations: 1, sinceMs: 99_999 }, 1000, 0)).toEqual({ sleep: false, checkAt: 250 });
  });

  test("it sleeps exactly when nothing used it for the idle time", () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.integer({ min: 1, max: 100_000 }), (sinceMs, idleMs) => {
        const decision = decideIdle({ operations: 0, sinceMs }, idleMs, 7);
        return decision.sleep ? sinceMs >= idleMs : decision.checkAt - 7 === idleMs - sinceMs;
      }),
    );
  });
});
