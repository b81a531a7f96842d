import { expect, test } from "vitest";
import { isTimeKept, withoutAbsence } from "./absence.ts";
import { decide } from "./decide.ts";
import { order } from "./observe/orders.ts";
import type { BuildState } from "./state.ts";
import { after, begin, offered, orders, returned, seen, task, tick } from "./testing.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const heard = { type: "attempt.heard", data: { task: "a", attempt: 1 } } as const;

/** With an attempt that works, after a turn at one minute. */
function working(): BuildState {
  return { ...after(tick(begin([task("a")]), 0), minuteMs, heard), turnAtMs: minuteMs };
}

test.each([
  { what: "a turn in time", atMs: 2 * minuteMs, absentMs: 0 },
  { what: "one that is a little late", atMs: 2 * minuteMs + 10_000, absentMs: 0 },
  { what: "one after a nap of the machine", atMs: 2 * minuteMs + 10_001, absentMs: 10_001 },
  { what: "one after two hours", atMs: 2 * minuteMs + 2 * hourMs, absentMs: 2 * hourMs },
  { what: "one after two days", atMs: 2 * minuteMs + 48 * hourMs, absentMs: 48 * hourMs },
  { what: "one by a clock that was set back", atMs: 0, absentMs: 0 },
])("$what leaves out $absentMs ms", ({ atMs, absentMs }) => {
  const state = working();
  const moved = withoutAbsence(state, atMs);
  expect(moved).toMatchObject({ activeSinceMs: absentMs, attempts: [{ startedAtMs: absentMs }] });
  if (absentMs === 0) expect(moved).toBe(state);
  else expect(decide(moved, atMs)).toEqual([]);
});

test("after an absence an attempt has its full time of silence again", () => {
  const moved = withoutAbsence(working(), 3 * hourMs);
  expect(decide(moved, 3 * hourMs + 89_999)).toEqual([]);
  expect(decide(moved, 3 * hourMs + 90_000)).toMatchObject([{ type: "respawn-attempt", attempt: 1 }]);
});

test("an absence does not change a paused attempt and shortens a wait in the merge queue", () => {
  const paused = { ...tick(order(working(), orders.pause, minuteMs), minuteMs), turnAtMs: minuteMs };
  expect(withoutAbsence(paused, 3 * hourMs)).toEqual(paused);
  const waiting = seen(working(), offered("a", 1, 1), minuteMs);
  const back = seen(withoutAbsence(waiting, 3 * hourMs), returned("a", 1, 1), 3 * hourMs);
  expect(back.attempts).toMatchObject([{ startedAtMs: 3 * hourMs - minuteMs }]);
});

test.each([
  { what: "at the next heartbeat", change: {}, atMs: 2 * minuteMs, isKept: true },
  { what: "in a burst", change: {}, atMs: minuteMs + 4999, isKept: false },
  { what: "that is the first known", change: { turnAtMs: null }, atMs: minuteMs, isKept: true },
  { what: "of a build whose time stands", change: { activeSinceMs: null }, atMs: 2 * minuteMs, isKept: false },
])("the time of a turn $what without news is kept: $isKept", ({ change, atMs, isKept }) => {
  expect(isTimeKept({ ...working(), ...change }, atMs)).toBe(isKept);
});

test("a state without a last turn counts all the time", () => {
  const state = { ...working(), turnAtMs: null };
  expect(withoutAbsence(state, 3 * hourMs)).toBe(state);
});
