import { buildSettingsSchema, endAs } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { decide } from "./decide.ts";
import { type BuildOrder, order } from "./observe/orders.ts";
import { type BuildState, beginPlanning, type Outcome, type TaskState } from "./state.ts";
import {
  after,
  begin,
  budgetOf,
  checkedRound,
  drafted,
  ended,
  failed,
  merged,
  offered,
  orders,
  plannedRest,
  released,
  returned,
  seen,
  spent,
  statuses,
  task,
  tick,
} from "./testing.ts";
import { nextWakeMs } from "./watch.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

function startedTasks(state: BuildState, nowMs = 0): string[] {
  return decide(state, nowMs).flatMap((action) => (action.type === "start-attempt" ? [action.task] : []));
}

function types(state: BuildState, nowMs: number): string[] {
  return decide(state, nowMs).map(({ type }) => type);
}

function told(state: BuildState, given: BuildOrder, nowMs: number): BuildState {
  return tick(order(state, given, nowMs), nowMs);
}

describe("scheduling", () => {
  test("the longest path goes first, and equal ones by id", () => {
    const tasks = [task("c"), task("b"), task("short", [], 40), task("long", [], 5), task("end", ["long"], 60)];
    expect(startedTasks(begin(tasks, { slots: 3 }))).toEqual(["long", "short", "b"]);
  });

  test("a build uses no more slots than it was granted", () => {
    const state = { ...begin([task("a"), task("b")]), grantedSlots: 1 };
    expect(startedTasks(state)).toEqual(["a"]);
  });

  test("a merge lets the next task begin in the same turn", () => {
    const state = after(tick(begin([task("a"), task("b", ["a"])]), 0), 5, ended("a", 1, merged));
    expect(statuses(state)).toEqual({ a: "merged", b: "assigned" });
  });

  test("a report about an ended attempt changes nothing", () => {
    const state = after(tick(begin([task("a")]), 0), 5, ended("a", 1, failed("x")));
    expect(seen(state, ended("a", 1, merged), 6)).toEqual(state);
  });
});

describe("failures", () => {
  test("a task that fails for good fails its dependents and nothing else", () => {
    let state = tick(begin([task("a"), task("b", ["a"]), task("c", ["b"]), task("other")]), 0);
    for (let attempt = 1; attempt <= 10; attempt++) {
      state = after(state, attempt, ended("a", attempt, failed("abcdefghij".charAt(attempt - 1))));
    }
    expect(statuses(state)).toEqual({ a: "failed", b: "failed", c: "failed", other: "assigned" });
    expect(state.tasks.map(({ failure }) => failure)).toMatchObject([
      { reason: "exhausted", error: "checks_failed: j" },
      { reason: "dependency", task: "a" },
      { reason: "dependency", task: "b" },
      null,
    ]);
  });

  test("an interruption is no try, and each wait is longer", () => {
    const state = after(tick(begin([task("a")]), 0), 1000, ended("a", 1, endAs("unavailable")));
    expect(state.tasks[0]).toMatchObject({ status: "pending", failures: [], notBeforeMs: 16_000 });
    expect(nextWakeMs(state, 1000)).toBe(16_000);
    const again = after(tick(state, 16_000), 20_000, ended("a", 2, endAs("unavailable")));
    expect(again.tasks[0]).toMatchObject({ notBeforeMs: 50_000, next: { level: null, from: "last-attempt" } });
  });

  /** The state after this many interruptions, each at once when it may begin again. */
  function interruptedOften(state: BuildState, times: number, outcome: Outcome): BuildState {
    let current = state;
    for (let count = 1; count <= times; count++) {
      const { attempts = 0, notBeforeMs = 0 } = current.tasks[0] ?? {};
      const running = tick(current, notBeforeMs);
      current = after(running, notBeforeMs, ended("a", running.tasks[0]?.attempts ?? attempts, outcome));
    }
    return current;
  }
  const limited: Outcome = endAs("rate_limited", "for some hours");
  const away: Outcome = endAs("unavailable", "the provider is away");

  test("attempts wait for a model's limit as long as the build lasts, at most ten minutes at a time", () => {
    const state = interruptedOften(begin([task("a")]), 100, limited);
    const waits = { status: "pending", failures: [], next: { level: null }, trouble: "rate_limited: for some hours" };
    expect(state.tasks[0]).toMatchObject({ ...waits, attempts: 100, interruptions: 0 });
    const [{ notBeforeMs }] = state.tasks as [TaskState];
    expect(notBeforeMs).toBeLessThan(100 * 10 * minuteMs);
    const again = interruptedOften(state, 1, limited).tasks[0];
    expect(again?.notBeforeMs).toBe(notBeforeMs + 10 * minuteMs);
    const working = tick(state, notBeforeMs);
    expect(working.tasks[0]).toMatchObject({ status: "assigned", trouble: null });
    expect(tick(state, dayMs)).toMatchObject({ status: "failed", endReason: "timeout" });
  });

  test("the eleventh interruption since the last failed try is a failure, even after an offer", () => {
    const before = interruptedOften(interruptedOften(begin([task("a")]), 10, away), 3, limited);
    const { notBeforeMs = 0, attempts = 0 } = before.tasks[0] ?? {};
    const attempt = attempts + 1;
    const waiting = after(tick(before, notBeforeMs), notBeforeMs, offered("a", attempt, 1));
    expect(waiting.tasks[0]).toMatchObject({ status: "verifying", interruptions: 10, modelInterruptions: 3 });
    const back = after(waiting, notBeforeMs, returned("a", attempt, 1));
    const { tasks } = after(back, notBeforeMs, ended("a", attempt, away));
    const error = "interrupted too often: unavailable: the provider is away";
    expect(tasks[0]).toMatchObject({ failures: [{ error }], interruptions: 0 });
  });

  test("too many other interruptions are a failure, and those by a model do not count", () => {
    const before = interruptedOften(interruptedOften(begin([task("a")]), 10, away), 20, limited);
    expect(before.tasks[0]).toMatchObject({ failures: [], interruptions: 10, modelInterruptions: 20 });
    const { tasks } = interruptedOften(before, 1, away);
    const error = "interrupted too often: unavailable: the provider is away";
    expect(tasks[0]).toMatchObject({ failures: [{ error }], interruptions: 0, modelInterruptions: 0, trouble: null });
  });
});

describe("watchdogs", () => {
  const heard = { type: "attempt.heard", data: { task: "a", attempt: 1 } } as const;

  test("a sandbox that misses three heartbeats is respawned from its checkpoint as the same attempt", () => {
    const state = after(tick(begin([task("a")]), 0), 1000, heard);
    expect(nextWakeMs(state, 1000)).toBe(91_000);
    expect(decide(state, 90_999)).toEqual([]);
    expect(decide(state, 91_000)).toEqual([{ type: "respawn-attempt", task: "a", attempt: 1, respawn: 1 }]);
  });

  test("without respawns, the loss of a sandbox is a failed try", () => {
    const state = after(tick(begin([task("a")], { respawn: false }), 0), 1000, heard);
    expect(types(state, 91_000)).toEqual(["end-attempt", "retry-task", "start-attempt"]);
  });

  test("a sandbox that keeps dying is respawned a limited number of times", () => {
    let state = tick(begin([task("a")]), 0);
    for (let death = 1; death <= 5; death++)
      state = after(state, death, ended("a", 1, endAs("runner_lost"), death - 1));
    expect(state.attempts).toMatchObject([{ number: 1, respawns: 5 }]);
    expect(after(state, 6, ended("a", 1, endAs("runner_lost"), 5)).attempts).toMatchObject([{ number: 2, level: 1 }]);
  });

  test("an attempt far beyond its estimate fails even if it is alive", () => {
    const state = seen(tick(begin([task("a", [], 20)]), 0), heard, 120 * minuteMs - 1000);
    expect(types(state, 120 * minuteMs)).toEqual(["end-attempt", "retry-task", "start-attempt"]);
  });

  test("an attempt that waits for its gates has no deadline", () => {
    const state = after(tick(begin([task("a")]), 0), 1000, { ...heard, type: "attempt.offered" });
    expect(statuses(state)).toEqual({ a: "verifying" });
    expect(decide(state, dayMs - 1)).toEqual([]);
  });
});

describe("money", () => {
  const poor = { budgetMicroUsd: 1000 };

  test("a build warns once at 80 % of its budget", () => {
    const state = tick(begin([task("a")], poor), 0);
    expect(types(seen(state, spent(799), 1), 1)).toEqual([]);
    const warned = seen(state, spent(800), 1);
    expect(types(warned, 1)).toEqual(["warn-budget"]);
    expect(types(seen(tick(warned, 1), spent(900), 2), 2)).toEqual([]);
  });

  test("a build at its budget pauses, keeps its attempts for days and continues when the budget is raised", () => {
    const state = after(tick(begin([task("a"), task("b")], poor), 0), 1000, spent(1000));
    expect(state).toMatchObject({ status: "paused", pause: { reason: "budget" }, attempts: [{}, {}] });
    expect(nextWakeMs(state, 1000)).toBeNull();
    expect(decide(told(state, orders.resume, 2000), 3000)).toEqual([]);
    const raised = told(state, budgetOf(2000), 2 * dayMs);
    expect(raised).toMatchObject({ status: "running", attempts: [{ pausedAtMs: null }, { pausedAtMs: null }] });
    expect(nextWakeMs(raised, 2 * dayMs)).toBeGreaterThan(2 * dayMs);
  });

  test("a refused reservation also pauses the build", () => {
    const refused = { ...endAs("budget"), budgetMicroUsd: 1000 } as const;
    const state = after(tick(begin([task("a")], poor), 0), 5, ended("a", 1, refused));
    expect(state).toMatchObject({ status: "paused", attempts: [{ number: 1, outcome: null }] });
    const raised = told(state, budgetOf(1001), 9);
    expect(raised).toMatchObject({ status: "running", attempts: [{ number: 1, pausedAtMs: null }] });
    const late = seen(raised, ended("a", 1, refused), 10);
    expect(decide(late, 10)).toEqual([{ type: "resume-attempt", task: "a", attempt: 1 }]);
    expect(tick(late, 10)).toMatchObject({ status: "running", attempts: [{ number: 1, outcome: null }] });
  });

  test("a build without money for a sandbox pauses, until the budget is raised or the user asks again", () => {
    const refused = { type: "compute.refused", data: { budgetMicroUsd: 1000 } } as const;
    const paused = after(tick(begin([task("a")], poor), 0), 5, refused);
    expect(paused).toMatchObject({ status: "paused", pause: { reason: "budget" } });
    expect(after(paused, 6, refused).status).toBe("paused");
    const raised = told(paused, budgetOf(1001), 9);
    expect(raised).toMatchObject({ status: "running", refusedMicroUsd: null });
    // What was refused before the raise is outdated.
    expect(after(raised, 10, refused).status).toBe("running");
    const again = told(paused, orders.resume, 11);
    expect(again.status).toBe("running");
    expect(after(again, 12, refused)).toMatchObject({ status: "paused", pause: { reason: "budget" } });
  });

  test("a raised budget resumes a build that its user paused only if it says so", () => {
    const state = told(tick(begin([task("a")], poor), 0), orders.pause, 1);
    expect(told(state, budgetOf(2000), 2).status).toBe("paused");
    const resumed = told(state, budgetOf(2000, true), 2);
    expect(resumed).toMatchObject({ status: "running", settings: { budgetMicroUsd: 2000 } });
  });

  test("a later resume asks again for refused money if the budget is not spent", () => {
    const refused = ended("a", 1, { ...endAs("budget"), budgetMicroUsd: 1000 });
    const before = order(tick(begin([task("a")], poor), 0), orders.resume, 5);
    const state = after(before, 5, refused, spent(999));
    expect(decide(state, 1000)).toEqual([]);
    const resumed = told(state, orders.resume, 6);
    expect(resumed).toMatchObject({ status: "running", attempts: [{ number: 1, pausedAtMs: null, outcome: null }] });
    expect(after(resumed, 7, refused)).toMatchObject({ status: "paused", pause: { reason: "budget" } });
    const atItsEnd = seen(state, spent(1000), 7);
    expect(told(atItsEnd, orders.resume, 8).status).toBe("paused");
  });

  test.each([0, -1, 500, 0.5, Number.NaN, Number.POSITIVE_INFINITY])(
    "a budget of %d is refused when 500 are spent",
    (budgetMicroUsd) => {
      const state = seen(begin([task("a")], poor), spent(500), 0);
      expect(() => order(state, budgetOf(budgetMicroUsd), 0)).toThrow(
        expect.objectContaining({ code: "invalid_budget" }),
      );
    },
  );
});

describe("an order", () => {
  test("pauses and resumes, and a result during the pause counts", () => {
    const paused = told(tick(begin([task("a"), task("b", ["a"])]), 0), orders.pause, 10);
    expect(paused).toMatchObject({ status: "paused", pause: { reason: "user" } });
    const state = after(paused, 20, ended("a", 1, merged));
    expect(statuses(state)).toEqual({ a: "merged", b: "pending" });
    expect(statuses(told(state, orders.resume, 30))).toEqual({ a: "merged", b: "assigned" });
  });

  test("respawns a sandbox that died during a pause", () => {
    const paused = told(tick(begin([task("a")]), 0), orders.pause, 10);
    const state = after(paused, 20, ended("a", 1, endAs("runner_lost")));
    expect(types(order(state, orders.resume, 30), 30)).toEqual(["resume-build", "respawn-attempt"]);
  });

  test("to cancel is final, and an ended build takes no orders", () => {
    const cancelled = order(tick(begin([task("a")]), 0), orders.cancel, 10);
    expect(order(cancelled, orders.resume, 11)).toEqual(cancelled);
    const over = tick(cancelled, 12);
    expect(over).toMatchObject({ status: "cancelled", endReason: "cancelled", attempts: [] });
    expect(order(over, orders.cancel, 13)).toBe(over);
    expect(() => order(over, orders.resume, 13)).toThrow(expect.objectContaining({ code: "build_ended" }));
  });
});

test("a build's time runs out, without its pauses", () => {
  const state = told(tick(begin([task("a")]), 0), orders.pause, 1000);
  const resumed = told(state, orders.resume, 5 * dayMs);
  const offered = seen(resumed, { type: "attempt.offered", data: { task: "a", attempt: 1 } }, 5 * dayMs);
  const endMs = 6 * dayMs - 1000;
  expect(nextWakeMs(offered, 5 * dayMs)).toBe(endMs);
  expect(types(offered, endMs - 1)).toEqual([]);
  const over = tick(offered, endMs);
  expect(over).toMatchObject({ status: "failed", endReason: "timeout", attempts: [] });
  expect(over.tasks).toMatchObject([{ status: "failed", failure: { reason: "build-ended" } }]);
});

test("a build's time stands still while its intent is held for the user", () => {
  const settings = buildSettingsSchema.parse({});
  const held = after(tick(beginPlanning(settings, "intent", 0), 0), 1000, drafted);
  expect(held).toMatchObject({ planning: { stage: "lock", step: "held" }, activeMs: 1000, activeSinceMs: null });
  expect(nextWakeMs(held, 1000)).toBeNull();
  const resumed = told(told(held, orders.pause, dayMs), orders.resume, 2 * dayMs);
  expect(decide(resumed, 5 * dayMs)).toEqual([]);
  const going = after(resumed, 5 * dayMs, released);
  expect(going).toMatchObject({ planning: { step: "underway" }, activeMs: 1000, activeSinceMs: 5 * dayMs });
  expect(nextWakeMs(going, 5 * dayMs)).toBe(6 * dayMs - 1000);
});

test("an intent that is released during a pause does not start the build's time", () => {
  const held = after(tick(beginPlanning(buildSettingsSchema.parse({}), "intent", 0), 0), 0, drafted);
  const paused = after(told(held, orders.pause, 0), dayMs, released);
  expect(paused).toMatchObject({ status: "paused", planning: { step: "due" }, activeSinceMs: null });
  expect(told(paused, orders.resume, 2 * dayMs)).toMatchObject({ activeMs: 0, activeSinceMs: 2 * dayMs });
});

describe("after the last task", () => {
  const done = after(tick(begin([task("a")]), 0), 5, ended("a", 1, merged));
  const checked = (state: BuildState, nowMs: number, ...unsatisfied: string[]) =>
    after(state, nowMs, checkedRound(state.progress.round, unsatisfied));
  const replanned = (state: BuildState, nowMs: number, id: string) => {
    const { round } = state.progress;
    const planned = after(state, nowMs, plannedRest(round, [task(id, ["a"])]));
    return after(planned, nowMs, ended(id, 1, merged));
  };

  test("a satisfied intent ends the build", () => {
    expect(done.progress.step).toBe("checking");
    expect(checked(done, 6)).toMatchObject({ status: "succeeded", endReason: "satisfied" });
  });

  test("unsatisfied criteria are planned and built, and a late second check changes nothing", () => {
    const state = checked(done, 6, "fast");
    expect(state.progress).toMatchObject({ step: "planning", unsatisfied: ["fast"] });
    expect(checked(state, 7)).toEqual(state);
    const again = replanned(state, 8, "b");
    expect(again.progress).toMatchObject({ step: "checking", round: 2 });
    expect(seen(again, plannedRest(1, [task("twice")]), 9)).toEqual(again);
    expect(checked(again, 9).status).toBe("succeeded");
  });

  test("rounds without a change end in a pause, and a resume allows more of them", () => {
    let state = checked(done, 10, "fast");
    for (let round = 1; round <= 3; round++)
      state = checked(replanned(state, 10 + round, `b-${round}`), 10 + round, "fast");
    expect(state).toMatchObject({ status: "paused", pause: { reason: "stuck" } });
    expect(decide(state, 1000)).toEqual([]);
    expect(told(state, orders.resume, 1000).progress.step).toBe("planning");
  });

  test("a plan that cannot be made ends the build", () => {
    const state = after(checked(done, 6, "fast"), 7, {
      type: "remaining.unplannable",
      data: { round: 1, message: "" },
    });
    expect(state).toMatchObject({ status: "failed", endReason: "unplannable" });
  });
});
