import { endAs } from "@slipway/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { applyActions } from "./apply.ts";
import { decide } from "./decide.ts";
import { type Observation, observe } from "./observe.ts";
import { order } from "./orders.ts";
import { type BuildState, hasEnded, isDone, type Outcome } from "./state.ts";
import { begin, failed, merged, task } from "./testing.ts";
import { nextWakeMs } from "./watch.ts";

const hourMs = 3_600_000;

const graphs = fc
  .array(fc.tuple(fc.array(fc.nat(), { maxLength: 3 }), fc.integer({ min: 1, max: 480 })), {
    minLength: 1,
    maxLength: 12,
  })
  .map((drawn) =>
    drawn.map(([picks, minutes], index) =>
      task(`t${index}`, index === 0 ? [] : [...new Set(picks.map((pick) => `t${pick % index}`))], minutes),
    ),
  );

const outcomes: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Outcome>(merged) },
  fc
    .record({ error: fc.constantFrom("a", "b", "c", "d"), pattern: fc.constantFrom(null, "p", "q") })
    .map(({ error, pattern }) => failed(error, pattern)),
  fc.constantFrom<Outcome>(endAs("runner_lost"), endAs("unavailable"), endAs("rate_limited"), endAs("budget")),
);

/** What the world does between two ticks; `pick` chooses the attempt it happens to. */
const happenings = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant("end" as const), pick: fc.nat(), outcome: outcomes }) },
  fc.record({ type: fc.constantFrom("hear" as const, "offer" as const), pick: fc.nat() }),
  fc.record({ type: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: hourMs }) }),
  fc.record({ type: fc.constant("spend" as const), microUsd: fc.integer({ min: 0, max: 1000 }) }),
  fc.record({ type: fc.constantFrom("pause" as const, "resume" as const, "raise" as const) }),
  fc.record({ type: fc.constant("grant" as const), slots: fc.integer({ min: 0, max: 6 }) }),
);
type Happening = typeof happenings extends fc.Arbitrary<infer T> ? T : never;

const scripts = fc.record({
  tasks: graphs,
  slots: fc.integer({ min: 1, max: 5 }),
  respawn: fc.boolean(),
  happenings: fc.array(happenings, { maxLength: 60 }),
});

test("a turn never runs more than it may, nor anything before what it depends on", () => {
  drive((before, state) => {
    const working = (of: BuildState) => of.attempts.filter(({ pausedAtMs }) => pausedAtMs === null).length;
    const most = Math.min(state.settings.slots, state.grantedSlots);
    // Slots that were taken back are not filled again; what runs in them ends by itself.
    expect(working(state)).toBeLessThanOrEqual(Math.max(most, working(before)));
    if (state.status !== "running") expect(working(state)).toBe(0);
    const mergedTasks = new Set(state.tasks.filter(({ status }) => status === "merged").map(({ id }) => id));
    for (const attempt of state.attempts) {
      const { dependencies = [] } = state.tasks.find(({ id }) => id === attempt.task) ?? {};
      for (const dependency of dependencies) expect(mergedTasks).toContain(dependency);
    }
  });
});

test("a task has at most one attempt that has not ended, and its status says so", () => {
  drive((_, state) => {
    for (const { id, status } of state.tasks) {
      const live = state.attempts.filter((attempt) => attempt.task === id).length;
      expect(live).toBe(["assigned", "building", "verifying"].includes(status) ? 1 : 0);
    }
  });
});

test("nothing is decided twice: after a turn there is nothing to do, until it wakes", () => {
  drive((_, state, nowMs) => {
    expect(decide(state, nowMs)).toEqual([]);
    const wakeMs = nextWakeMs(state, nowMs) ?? nowMs + 1000 * hourMs;
    expect(wakeMs).toBeGreaterThan(nowMs);
    expect(decide(state, wakeMs - 1)).toEqual([]);
  });
});

test("no attempt is started twice", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const started: string[] = [];
      play(script, (before, _, nowMs) => {
        for (const action of decide(before, nowMs)) {
          if (action.type === "start-attempt") started.push(`${action.task}#${action.attempt}`);
        }
      });
      expect(new Set(started).size).toBe(started.length);
    }),
  );
});

test("the order in which tasks and attempts are listed decides nothing", () => {
  drive((before, _, nowMs) => {
    const turned = { ...before, tasks: before.tasks.toReversed(), attempts: before.attempts.toReversed() };
    expect(decide(turned, nowMs)).toEqual(decide(before, nowMs));
  });
});

test("a cancel ends everything, whatever was going on", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const { state, nowMs } = play(script);
      if (hasEnded(state)) return;
      const cancelled = turn(order(state, { type: "cancel" }, nowMs), nowMs);
      expect(cancelled).toMatchObject({ status: "cancelled", attempts: [] });
      expect(cancelled.tasks.every(isDone)).toBe(true);
      expect(decide(cancelled, nowMs)).toEqual([]);
    }),
  );
});

test("every task is merged or says why not, once the world goes on", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const { state, nowMs } = settle(play(script));
      expect(state.tasks.every(isDone)).toBe(true);
      expect(state.tasks.every(({ status, failure }) => (status === "failed") === (failure !== null))).toBe(true);
      expect(state.status).toBe("succeeded");
      expect(decide(state, nowMs)).toEqual([]);
    }),
  );
});

type Script = typeof scripts extends fc.Arbitrary<infer T> ? T : never;
type Check = (before: BuildState, state: BuildState, nowMs: number) => void;

function drive(check: Check): void {
  fc.assert(fc.property(scripts, (script) => void play(script, check)));
}

function play({ tasks, slots, respawn, happenings: all }: Script, check: Check = () => {}) {
  let state = begin(tasks, { slots, respawn, budgetMicroUsd: 5000, timeoutMs: 30 * 24 * hourMs });
  let nowMs = 0;
  const step = () => {
    const next = turn(state, nowMs);
    check(state, next, nowMs);
    state = next;
  };
  step();
  for (const happening of all) {
    if (hasEnded(state)) break;
    nowMs += happening.type === "wait" ? happening.ms : 1000;
    state = happen(state, happening, nowMs);
    step();
  }
  return { state, nowMs };
}

/** From here on all goes well: money is there, attempts merge, and the criteria are satisfied. */
function settle({ state, nowMs }: { state: BuildState; nowMs: number }) {
  let current = observe(state, { type: "slots-granted", slots: 5 }, nowMs);
  for (let turns = 0; !hasEnded(current) && turns < 200; turns++) {
    nowMs += 11 * 60_000;
    const { round } = current.progress;
    current = order(current, { type: "resume" }, nowMs);
    current = happen(current, { type: "raise" }, nowMs);
    for (const { task: id, number } of current.attempts) {
      current = observe(current, { type: "attempt-ended", task: id, attempt: number, outcome: merged }, nowMs);
    }
    current = observe(current, { type: "satisfaction-checked", round, unsatisfied: [] }, nowMs);
    current = turn(current, nowMs);
  }
  return { state: current, nowMs };
}

function turn(state: BuildState, nowMs: number): BuildState {
  return applyActions(state, decide(state, nowMs), nowMs);
}

function happen(state: BuildState, happening: Happening, nowMs: number): BuildState {
  const raised = Math.max(state.settings.budgetMicroUsd, state.spentMicroUsd) + 5000;
  switch (happening.type) {
    case "wait":
      return state;
    case "pause":
    case "resume":
      return order(state, { type: happening.type }, nowMs);
    case "raise":
      return order(state, { type: "set-budget", budgetMicroUsd: raised }, nowMs);
    case "spend":
      return observe(state, { type: "spent", microUsd: state.spentMicroUsd + happening.microUsd }, nowMs);
    case "grant":
      return observe(state, { type: "slots-granted", slots: happening.slots }, nowMs);
    default:
      return toAttempt(state, happening, nowMs);
  }
}

function toAttempt(
  state: BuildState,
  happening: Extract<Happening, { type: "end" | "hear" | "offer" }>,
  nowMs: number,
): BuildState {
  const picked = state.attempts[happening.pick % Math.max(1, state.attempts.length)];
  if (picked === undefined) return state;
  const name = { task: picked.task, attempt: picked.number };
  const observations = {
    hear: { type: "attempt-heard", ...name },
    offer: { type: "attempt-offered", ...name },
    end: { type: "attempt-ended", ...name, outcome: "outcome" in happening ? happening.outcome : merged },
  } as const satisfies Record<string, Observation>;
  return observe(state, observations[happening.type], nowMs);
}
