import { newId, SlipwayError } from "@slipway/contract";
import { afterEach, expect, test, vi } from "vitest";
import { anHour, over, scriptedTurns } from "./testing/scripted-turns.ts";
import { describeDrive } from "./testing/suite.ts";
import { openTimers } from "./timers.ts";

const warn = () => {};

describeDrive({
  open: (takeTurn, parts) => openTimers({ name: "server", takeTurn, warn, ...parts }),
  // All that a drive does without a timer is done by then.
  idle: async () => void (await new Promise(setImmediate)),
});

afterEach(() => void vi.useRealTimers());

test("a turn is due when its time has passed, and not a moment sooner", async () => {
  vi.useFakeTimers();
  const { takeTurn, calls } = scriptedTurns(() => anHour);
  await using drive = await openTimers({ name: "server", takeTurn, warn });
  await drive.drive(newId("bld"), 1);
  await vi.advanceTimersByTimeAsync(3_599_999);
  expect(calls).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(calls).toHaveLength(2);
});

test("a turn that is due in a year is not taken at once", async () => {
  vi.useFakeTimers();
  const { takeTurn, calls } = scriptedTurns(() => ({ over: false, waitMs: 365 * 24 * 3_600_000 }));
  await using drive = await openTimers({ name: "server", takeTurn, warn });
  await drive.drive(newId("bld"), 1);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(calls).toHaveLength(1);
});

test("a turn that fails again and again is taken ever more seldom, down to every five seconds", async () => {
  vi.useFakeTimers();
  const times: number[] = [];
  const { takeTurn } = scriptedTurns(() => {
    times.push(Date.now());
    throw new SlipwayError("database_busy", "later");
  });
  await using drive = await openTimers({ name: "server", takeTurn, warn });
  await drive.drive(newId("bld"), 1);
  await vi.advanceTimersByTimeAsync(30_000);
  const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
  expect(waits.slice(0, 9)).toEqual([50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
});

test("a bell that rings twice makes one turn due", async () => {
  const { takeTurn, called, calls } = scriptedTurns((_, count) => (count < 3 ? anHour : over));
  await using drive = await openTimers({ name: "server", takeTurn, warn });
  await drive.drive(newId("bld"), 1);
  const { bell } = await called(1);
  await Promise.all([drive.ring(bell), drive.ring(bell)]);
  await called(2);
  await new Promise(setImmediate);
  expect(calls).toHaveLength(2);
});
