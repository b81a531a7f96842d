import { setImmediate } from "node:timers/promises";
import { SlipwayError, type StateReason } from "@slipway/contract";
import { expect, test } from "vitest";
import { manualClock } from "../../../../keeper/clock-fixture.ts";
import type { Box } from "../boxes/boxes.ts";
import { recordFixture } from "../boxes/record-fixture.ts";
import { startHearing } from "./hearing.ts";

/** No answer, for half a minute. */
const silent = [false, false, false, false];

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
  const look = async (times: number) => {
    for (let done = 0; done < times; done++) {
      await clock.advance(10_000);
      await setImmediate();
    }
    await setImmediate();
  };
  return { box, ended, left, look, hearing, openTurn: turn.resolve, failTurn: turn.reject };
}

test("a sandbox that answers again within half a minute lives", async () => {
  const { ended, left, look, openTurn } = setUp("running", [true, false, false, false, true, false, false, false]);
  openTurn();
  await look(8);
  expect(left).toEqual([]);
  expect(ended).toEqual([]);
});

test("a sandbox that does not answer for half a minute, nor then in its turn, is ended", async () => {
  const { ended, left, look, openTurn } = setUp("running", [true, ...silent, false]);
  openTurn();
  await look(5);
  expect(left).toEqual([]);
  expect(ended).toEqual(["provider_lost"]);
});

test("a sandbox that answers in its turn had only been held, and lives; meanwhile it is not asked", async () => {
  const { ended, left, look, openTurn } = setUp("running", [...silent, true]);
  await look(9);
  expect(left).toEqual([true]);
  openTurn();
  await look(0);
  expect(left).toEqual([]);
  expect(ended).toEqual([]);
});

test("a sandbox that fell asleep before it could answer lives", async () => {
  const { box, ended, left, look, openTurn } = setUp("running", [...silent, false]);
  await look(4);
  box.record = { ...box.record, state: "sleeping" };
  openTurn();
  await look(0);
  expect(left).toEqual([false]);
  expect(ended).toEqual([]);
});

test("a sandbox that was destroyed before its turn is no failure", async () => {
  const { ended, look, failTurn } = setUp("running", silent);
  await look(4);
  failTurn(new SlipwayError("sandbox_not_found", "gone"));
  await look(0);
  expect(ended).toEqual([]);
});

test("a sandbox that sleeps is not asked, and after the end nobody is", async () => {
  const asleep = setUp("sleeping", [false]);
  await asleep.look(3);
  expect(asleep.left).toEqual([false]);
  const over = setUp("running", [false]);
  over.hearing[Symbol.dispose]();
  await over.look(3);
  expect(over.left).toEqual([false]);
});
