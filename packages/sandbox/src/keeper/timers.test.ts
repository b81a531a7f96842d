import { newId, SlipwayError, type StateReason } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { Box } from "./boxes/boxes.ts";
import { manualClock } from "./clock-fixture.ts";
import type { NewSandboxEvent } from "./events/log.ts";
import { createTimers } from "./timers.ts";

function setUp(request: object, { operations = 0, sinceMs = 0, clock = manualClock() } = {}) {
  const done: string[] = [];
  const errors: unknown[] = [];
  const memory = { toldEnd: null, checkIdleAt: 300, lastCheckpointAt: 0 };
  const timing = { state: "running", stateChangedAt: 0, expiresAt: 1000, owedSnapshot: null };
  const defaults = { idleMs: null, sleepingMs: 500, checkpointMs: null, expiringGraceMs: 100, onEnd: "stop" };
  const box = {
    id: newId("sbx"),
    memory,
    record: { ...timing, request: { ...defaults, ...request } },
  } as unknown as Box;
  const note = (what: string) => async (_id: unknown, reason?: unknown) => {
    done.push(`${clock.now()} ${what}${typeof reason === "string" ? ` ${reason}` : ""}`);
  };
  let inTurn = () => {};
  const enter =
    (
      state: "stopped" | "sleeping",
      what: string,
    ): ((id: unknown, reason?: StateReason, isDue?: () => Promise<boolean>) => Promise<void>) =>
    async (id, reason, isDue) => {
      inTurn();
      if (isDue !== undefined && !(await isDue())) return;
      await note(what)(id, reason);
      const owedSnapshot = reason === "slept_out" ? newId("snp", 0) : null;
      box.record = { ...box.record, state, stateChangedAt: clock.now(), owedSnapshot };
      timers.schedule(box);
    };
  let use = async () => ({ operations, sinceMs });
  const timers = createTimers({
    clock,
    events: { append: (event: NewSandboxEvent) => done.push(`${clock.now()} ${event.type}`) } as never,
    boxes: {
      update(changed, change) {
        changed.record = { ...changed.record, ...change };
        timers.schedule(changed);
      },
    },
    lifecycle: {
      end: enter("stopped", "end"),
      stop: enter("stopped", "stop"),
      sleep: enter("sleeping", "sleep"),
      destroy: async (id: unknown, reason: unknown) => {
        await note("destroy")(id, reason);
        timers.forget(box);
      },
    } as never,
    snapshots: { checkpoint: note("checkpoint"), create: (id: unknown) => note("snapshot")(id) } as never,
    use: () => use(),
    onError: (_box, error) => errors.push(error),
  });
  timers.schedule(box);
  return {
    clock,
    done,
    errors,
    box,
    timers,
    setUse: (next: typeof use) => (use = next),
    beforeTurn: (change: () => void) => (inTurn = change),
  };
}

describe("by time alone", () => {
  test("a sandbox is told its end, then ends, once", async () => {
    const { clock, done } = setUp({});
    await clock.advance(5000);
    expect(done).toEqual(["900 sandbox.expiring", "1000 end expired"]);
  });

  test("checkpoints come until the end", async () => {
    const { clock, done } = setUp({ checkpointMs: 400 });
    await clock.advance(5000);
    expect(done).toEqual(["400 checkpoint", "800 checkpoint", "900 sandbox.expiring", "1000 end expired"]);
  });

  test("an idle sandbox sleeps; after its sleeping time it stops with a snapshot", async () => {
    const { clock, done } = setUp({ idleMs: 300 }, { sinceMs: 300 });
    await clock.advance(5000);
    expect(done).toEqual(["300 sleep idle", "700 sandbox.expiring", "800 stop slept_out", "800 snapshot"]);
  });

  test("one that is to be destroyed at its end is, after the snapshot", async () => {
    const { clock, done } = setUp({ idleMs: 300, onEnd: "destroy" }, { sinceMs: 300 });
    await clock.advance(5000);
    expect(done.slice(-3)).toEqual(["800 stop slept_out", "800 snapshot", "800 destroy slept_out"]);
  });

  test("a busy sandbox is looked at again and stays awake", async () => {
    const { clock, done } = setUp({ idleMs: 300 }, { operations: 1 });
    await clock.advance(899);
    expect(done).toEqual([]);
  });
});

test("a timer that comes before its time ends nothing", async () => {
  const { clock, done } = setUp({}, { clock: manualClock(250) });
  await clock.advance(899);
  expect(done).toEqual([]);
  await clock.advance(5000);
  expect(done).toEqual(["900 sandbox.expiring", "1000 end expired"]);
});

test("a keep-alive that had its turn before the end puts it off", async () => {
  const { clock, done, box, beforeTurn } = setUp({ expiringGraceMs: 0 });
  beforeTurn(() => {
    box.record = { ...box.record, expiresAt: 3000 };
  });
  await clock.advance(2999);
  expect(done.filter((what) => what.includes("end expired"))).toEqual([]);
  await clock.advance(1);
  expect(done.at(-1)).toBe("3000 end expired");
});

test("a sandbox that wakes before its sleep is over by its turn is not stopped", async () => {
  const { clock, done, box, beforeTurn } = setUp({ idleMs: 300 }, { sinceMs: 300 });
  await clock.advance(799);
  beforeTurn(() => {
    box.record = { ...box.record, state: "running", expiresAt: 9000 };
    box.memory = { ...box.memory, checkIdleAt: 9000 };
  });
  await clock.advance(10);
  expect(done).not.toContain("800 stop slept_out");
});

test("a sandbox that was used before its turn to sleep stays awake", async () => {
  const { clock, done, setUse, beforeTurn } = setUp({ idleMs: 300 }, { sinceMs: 300 });
  beforeTurn(() => setUse(async () => ({ operations: 1, sinceMs: 0 })));
  await clock.advance(310);
  expect(done).toEqual([]);
});

test("what fails is told and tried again, not at once", async () => {
  const { clock, errors, setUse } = setUp({ idleMs: 300 });
  let asked = 0;
  setUse(async () => {
    asked++;
    throw new SlipwayError("provider_unavailable", "no answer");
  });
  await clock.advance(899);
  expect(asked).toBe(1);
  expect(errors).toHaveLength(1);
});

test("a sandbox that is no more is left alone, also when it went while something was due", async () => {
  const { clock, done, box, timers, setUse } = setUp({ idleMs: 300 });
  setUse(async () => {
    timers.forget(box);
    throw new SlipwayError("sandbox_not_found", "gone");
  });
  await clock.advance(10_000);
  expect(done).toEqual([]);
});
