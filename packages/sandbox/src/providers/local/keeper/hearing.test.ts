import { setImmediate } from "node:timers/promises";
import { SlipwayError, type StateReason } from "@slipway/contract";
import { expect, test } from "vitest";
import type { Box } from "./boxes.ts";
import { manualClock } from "./clock-fixture.ts";
import { startHearing } from "./hearing.ts";
import { recordFixture } from "./record-fixture.ts";

/** A sandbox whose pid 1 answers as told, and how it was ended. */
function setUp(state: "running" | "sleeping", answers: readonly boolean[]) {
  const record = recordFixture({ state });
  const box = { id: record.id, record } as Box;
  const left = [...answers];
  const clock = manualClock();
  const ended: StateReason[] = [];
  const turn = Promise.withResolvers<void>();
  const hearing = startHearing({
    boxes: { all: () => [box] },
    agent: {
      async use() {
        if (!left.shift()) throw new Error("no answer");
        return { operations: 0, sinceMs: 0 };
      },
    },
    lifecycle: {
      async end(_id, reason, isDue) {
        await turn.promise;
        if (await isDue?.()) ended.push(reason);
      },
    },
    clock,
    onError(_box, error) {
      throw error;
    },
  });
  return { box, clock, ended, left, hearing, openTurn: turn.resolve, failTurn: turn.reject };
}

test("a sandbox that answers is asked again, and lives", async () => {
  const { clock, ended, left, openTurn } = setUp("running", [true, true, true]);
  openTurn();
  for (let times = 0; times < 3; times++) {
    await clock.advance(10_000);
    await setImmediate();
  }
  expect(left).toEqual([]);
  expect(ended).toEqual([]);
});

test("a sandbox that answers neither at once nor in its turn is ended", async () => {
  const { clock, ended, openTurn } = setUp("running", [false, false]);
  openTurn();
  await clock.advance(10_000);
  await setImmediate();
  expect(ended).toEqual(["provider_lost"]);
});

test("a sandbox that answers in its turn had only been held, and lives; meanwhile it is not asked", async () => {
  const { clock, ended, left, openTurn } = setUp("running", [false, true]);
  for (let times = 0; times < 5; times++) {
    await clock.advance(10_000);
    await setImmediate();
  }
  expect(left).toEqual([true]);
  openTurn();
  await setImmediate();
  expect(left).toEqual([]);
  expect(ended).toEqual([]);
});

test("a sandbox that fell asleep before it could answer lives", async () => {
  const { box, clock, ended, left, openTurn } = setUp("running", [false, false]);
  await clock.advance(10_000);
  await setImmediate();
  box.record = { ...box.record, state: "sleeping" };
  openTurn();
  await setImmediate();
  expect(left).toEqual([false]);
  expect(ended).toEqual([]);
});

test("a sandbox that was destroyed before its turn is no failure", async () => {
  const { clock, ended, failTurn } = setUp("running", [false]);
  failTurn(new SlipwayError("sandbox_not_found", "gone"));
  await clock.advance(10_000);
  await setImmediate();
  expect(ended).toEqual([]);
});

test("a sandbox that sleeps is not asked, and after the end nobody is", async () => {
  const asleep = setUp("sleeping", [false]);
  await asleep.clock.advance(30_000);
  expect(asleep.left).toEqual([false]);
  const over = setUp("running", [false]);
  over.hearing[Symbol.dispose]();
  await over.clock.advance(30_000);
  expect(over.left).toEqual([false]);
});
