import { endAs } from "@slipway/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { applyActions } from "./apply.ts";
import { decide } from "./decide.ts";
import type { Fact, Known } from "./observe/facts.ts";
import { takeIn } from "./observe/observe.ts";
import { order } from "./observe/orders.ts";
import { type BuildState, hasEnded, isDone, type Outcome } from "./state.ts";
import {
  begin,
  budgetOf,
  checkedRound,
  ended,
  failed,
  merged,
  nothingKnown,
  orders,
  seen,
  spent,
  task,
} from "./testing.ts";
import { nextWakeMs } from "./watch.ts";

const hourMs = 3_600_000;
const known: Known = { ...nothingKnown, patterns: new Set(["checks_failed: a", "checks_failed: b"]) };

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
  fc.constantFrom("a", "b", "c", "d").map(failed),
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

test("a turn stays within its slots and starts no task before its dependencies", () => {
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

test("a task has at most one open attempt, and its status says so", () => {
  drive((_, state) => {
    for (const { id, status } of state.tasks) {
      const live = state.attempts.filter((attempt) => attempt.task === id).length;
      expect(live).toBe(["assigned", "building", "verifying"].includes(status) ? 1 : 0);
    }
  });
});

test("after a turn there is nothing to decide until it wakes", () => {
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

test("the order of the lists of tasks and attempts has no effect", () => {
  drive((before, _, nowMs) => {
    const turned = { ...before, tasks: before.tasks.toReversed(), attempts: before.attempts.toReversed() };
    expect(decide(turned, nowMs)).toEqual(decide(before, nowMs));
  });
});

test("a turn that is cut short and repeated by another process has the same result", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const told: { fact: Fact; kept: string }[] = [];
      play(
        script,
        (observed, after, nowMs) => {
          const facts = told.splice(0);
          const kept: BuildState = JSON.parse(facts[0]?.kept ?? JSON.stringify(observed));
          const before = { state: kept, records: {}, places: new Map(), learnt: [] };
          const taken = takeIn(
            before,
            facts.map(({ fact }) => fact),
            known,
            nowMs,
          );
          expect(turn(taken.state, nowMs)).toEqual(after);
        },
        (fact, before) => told.push({ fact, kept: JSON.stringify(before) }),
      );
    }),
  );
});

test("a repeated fact counts once, and one about an ended attempt changes nothing", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const told: Fact[] = [];
      const { state, nowMs } = play(
        script,
        () => {},
        (fact, before, atMs) => {
          const once = seen(before, fact, atMs, known);
          expect(seen(once, fact, atMs, known)).toEqual(once);
          told.push(fact);
        },
      );
      const isOver = ({ data }: Fact) =>
        "attempt" in data && !state.attempts.some((one) => one.task === data["task"] && one.number === data["attempt"]);
      for (const fact of told.filter(isOver)) expect(seen(state, fact, nowMs + 1, known)).toEqual(state);
    }),
  );
});

test("a cancel ends everything at any time", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      const { state, nowMs } = play(script);
      if (hasEnded(state)) return;
      const cancelled = turn(order(state, orders.cancel, nowMs), nowMs);
      expect(cancelled).toMatchObject({ status: "cancelled", attempts: [] });
      expect(cancelled.tasks.every(isDone)).toBe(true);
      expect(decide(cancelled, nowMs)).toEqual([]);
    }),
  );
});

test("every task ends as merged or with a reason", () => {
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
/** `before`: without the fact. */
type Listen = (fact: Fact, before: BuildState, nowMs: number) => void;

function drive(check: Check): void {
  fc.assert(fc.property(scripts, (script) => void play(script, check)));
}

function play({ tasks, slots, respawn, happenings: all }: Script, check: Check = () => {}, listen: Listen = () => {}) {
  let state = begin(tasks, { slots, respawn, budgetMicroUsd: 5000, timeoutMs: 30 * 24 * hourMs });
  let nowMs = 0;
  const step = (facts: readonly Fact[]) => {
    const observed = facts.reduce((current, fact) => seen(current, fact, nowMs, known), state);
    const next = turn(observed, nowMs);
    check(observed, next, nowMs);
    state = next;
  };
  step([]);
  for (const happening of all) {
    if (hasEnded(state)) break;
    nowMs += happening.type === "wait" ? happening.ms : 1000;
    if (happening.type === "grant") state = { ...state, grantedSlots: happening.slots };
    const facts = factsOf(state, happening);
    for (const fact of facts) listen(fact, state, nowMs);
    step(facts);
  }
  return { state, nowMs };
}

/** From here on all goes well: money is there, attempts merge, and the criteria are satisfied. */
function settle({ state, nowMs }: { state: BuildState; nowMs: number }) {
  let current: BuildState = { ...state, grantedSlots: 5 };
  for (let turns = 0; !hasEnded(current) && turns < 200; turns++) {
    nowMs += 11 * 60_000;
    const { round } = current.progress;
    const ends = current.attempts.map(({ task: id, number, respawns }) => ended(id, number, merged, respawns));
    const facts = [orders.resume, ...factsOf(current, { type: "raise" }), ...ends, checkedRound(round, [])];
    current = turn(
      facts.reduce((before, fact) => seen(before, fact, nowMs, known), current),
      nowMs,
    );
  }
  return { state: current, nowMs };
}

function turn(state: BuildState, nowMs: number): BuildState {
  return applyActions(state, decide(state, nowMs), nowMs);
}

function factsOf(state: BuildState, happening: Happening): readonly Fact[] {
  switch (happening.type) {
    case "wait":
    case "grant":
      return [];
    case "pause":
    case "resume":
      return [orders[happening.type]];
    case "raise":
      return [budgetOf(Math.max(state.settings.budgetMicroUsd, state.spentMicroUsd) + 5000)];
    case "spend":
      return [spent(state.spentMicroUsd + happening.microUsd)];
    default: {
      const picked = state.attempts[happening.pick % Math.max(1, state.attempts.length)];
      return picked === undefined ? [] : [factOf(picked, happening)];
    }
  }
}

type OfAttempt = Extract<Happening, { type: "end" | "hear" | "offer" }>;

function factOf({ task: id, number, respawns }: BuildState["attempts"][number], happening: OfAttempt): Fact {
  const name = { task: id, attempt: number };
  if ("outcome" in happening) return ended(id, number, happening.outcome, respawns);
  return { type: happening.type === "hear" ? "attempt.heard" : "attempt.offered", data: name };
}
