import { type AgentEvent, type RunLimits, runLimitsSchema } from "@slipway/contract";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { endOf } from "../testing/end.ts";
import { supervise } from "./supervise.ts";

const done: AgentEvent = { type: "ended", end: { reason: "completed", message: "ready" } };
const thinking: AgentEvent = { type: "status", status: "thinking" };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Turn = (signal: AbortSignal) => AsyncIterable<AgentEvent>;

/** Lets the turn run to its end, with as much time as it takes. */
async function outcome(
  turn: Turn,
  options: { limits?: Partial<RunLimits>; signal?: AbortSignal; waitsForUser?: () => boolean } = {},
): Promise<AgentEvent[]> {
  const { limits, signal = new AbortController().signal, ...rest } = options;
  const events: AgentEvent[] = [];
  const reading = (async () => {
    const supervision = { limits: runLimitsSchema.parse(limits ?? {}), signal, graceMs: 1_000, ...rest };
    for await (const event of supervise(turn, supervision)) events.push(event);
  })();
  await vi.runAllTimersAsync();
  await reading;
  return events;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}

function elapse(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

function call(id: number, name: string, output: string): AgentEvent[] {
  const tool = { type: "tool", id: String(id), name, kind: "execute" } as const;
  return [
    { ...tool, phase: "start", input: name },
    { ...tool, phase: "end", output, ok: true },
  ];
}

test("a turn within its limits passes unchanged", async () => {
  const events = [thinking, ...call(1, "terminal", "out"), done];
  expect(
    await outcome(async function* () {
      yield* events;
    }),
  ).toEqual(events);
});

test("events after the end of a turn are dropped", async () => {
  expect(
    await outcome(async function* () {
      yield* [done, thinking, done];
    }),
  ).toEqual([done]);
});

test("a turn that stops without an end has crashed", async () => {
  expect(
    await outcome(async function* () {
      yield thinking;
    }),
  ).toMatchObject([thinking, { type: "ended", end: { reason: "crashed" } }]);
});

test.each([
  [
    "at once",
    () => {
      throw new Error("broken");
    },
  ],
  [
    "in its stream",
    async function* () {
      yield thinking;
      throw new Error("broken");
    },
  ],
])("a driver that throws %s ends the turn as an internal error", async (_when, turn: Turn) => {
  expect(endOf(await outcome(turn))).toMatchObject({ reason: "internal" });
});

test("a turn that takes too long times out, however busy it is", async () => {
  const events = await outcome(
    async function* (signal) {
      for (; !signal.aborted; await elapse(100)) yield thinking;
      yield { type: "ended", end: { reason: "cancelled", message: "" } };
    },
    { limits: { totalMs: 1_000, idleMs: 500 } },
  );
  expect(endOf(events)).toMatchObject({ reason: "timeout" });
  expect(events.filter((event) => event.type !== "status")).toHaveLength(1);
});

describe("silence", () => {
  const silent: Turn = async function* (signal) {
    yield thinking;
    await aborted(signal);
    yield { type: "ended", end: { reason: "cancelled", message: "" } };
  };

  test("of a turn for too long ends it as stuck", async () => {
    const events = await outcome(silent, { limits: { idleMs: 500 } });
    expect(events).toMatchObject([thinking, { type: "ended", end: { reason: "stuck" } }]);
  });

  test("that waits for the user is limited only by the total time", async () => {
    const events = await outcome(silent, { limits: { idleMs: 500, totalMs: 5_000 }, waitsForUser: () => true });
    expect(events).toMatchObject([thinking, { type: "ended", end: { reason: "timeout" } }]);
  });
});

test("a turn that does not end in time is abandoned after the grace", async () => {
  const events = await outcome(
    async function* () {
      await new Promise(() => {});
    },
    { limits: { idleMs: 500 } },
  );
  expect(events).toMatchObject([{ type: "ended", end: { reason: "stuck" } }]);
});

test("events of a turn that is being ended are kept, except its own end", async () => {
  const [start, end] = call(1, "terminal", "killed");
  const events = await outcome(
    async function* (signal) {
      if (start) yield start;
      await aborted(signal);
      if (end) yield end;
      yield done;
    },
    { limits: { idleMs: 500 } },
  );
  expect(events).toMatchObject([start, end, { type: "ended", end: { reason: "stuck" } }]);
});

test("too many equal calls with equal results end the turn as looping", async () => {
  const events = await outcome(
    async function* (signal) {
      for (let i = 0; !signal.aborted; i++) yield* call(i, "terminal", "same");
    },
    { limits: { maxRepeats: 3 } },
  );
  expect(endOf(events)).toMatchObject({ reason: "looping" });
  expect(events.filter((event) => event.type === "tool" && event.phase === "end")).toHaveLength(4);
});

test("more steps than allowed end the turn; calls side by side are one step", async () => {
  const [firstStart, firstEnd] = call(1, "a", "");
  const [secondStart, secondEnd] = call(2, "b", "");
  const parallel = [firstStart, secondStart, firstEnd, secondEnd].filter((event) => event !== undefined);
  const steps = (count: number): Turn =>
    async function* () {
      for (let i = 0; i < count; i++) yield* parallel;
      yield done;
    };
  expect((await outcome(steps(2), { limits: { maxSteps: 2 } })).at(-1)).toEqual(done);
  expect(endOf(await outcome(steps(3), { limits: { maxSteps: 2 } }))).toMatchObject({ reason: "max_steps" });
});

test("a cancelled turn ends as cancelled, even when it says that it is done", async () => {
  const controller = new AbortController();
  const events = await outcome(
    async function* (signal) {
      yield thinking;
      controller.abort();
      await aborted(signal);
      yield done;
    },
    { signal: controller.signal },
  );
  expect(events).toMatchObject([thinking, { type: "ended", end: { reason: "cancelled" } }]);
});

test("a turn that is cancelled before it starts ends as cancelled", async () => {
  const events = await outcome(
    async function* () {
      yield done;
    },
    { signal: AbortSignal.abort() },
  );
  expect(events).toMatchObject([{ type: "ended", end: { reason: "cancelled" } }]);
});
