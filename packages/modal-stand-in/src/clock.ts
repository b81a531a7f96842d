/** The time that lifetimes, expiry and accounting go by. */
export interface Clock {
  now(): number;
  /** Runs once when the time has come. */
  at(timeMs: number, run: () => unknown): Disposable;
}

export interface MovableClock extends Clock {
  /** Moves the time forward. Resolves when all that falls due by then has been done, in its order. */
  advance(byMs: number): Promise<void>;
}

interface Alarm {
  readonly timeMs: number;
  readonly run: () => unknown;
  timer: NodeJS.Timeout;
}

/** Follows the machine's clock, ahead of it by what it was moved. */
export function createClock(): MovableClock {
  let aheadMs = 0;
  const alarms = new Set<Alarm>();
  const now = () => Date.now() + aheadMs;
  const ring = async (alarm: Alarm): Promise<void> => {
    clearTimeout(alarm.timer);
    if (alarms.delete(alarm)) await alarm.run();
  };
  const set = (alarm: Alarm) => {
    clearTimeout(alarm.timer);
    // A timer may fire early.
    alarm.timer = setTimeout(
      () => (now() < alarm.timeMs ? set(alarm) : void ring(alarm)),
      Math.min(Math.max(0, alarm.timeMs - now()), longestTimerMs),
    ).unref();
  };
  return {
    now,
    at(timeMs, run) {
      const alarm: Alarm = { timeMs, run, timer: setTimeout(() => {}, 0) };
      alarms.add(alarm);
      set(alarm);
      return {
        [Symbol.dispose]() {
          clearTimeout(alarm.timer);
          alarms.delete(alarm);
        },
      };
    },
    async advance(byMs) {
      aheadMs += byMs;
      for (;;) {
        const due = [...alarms].filter(({ timeMs }) => timeMs <= now()).sort((a, b) => a.timeMs - b.timeMs);
        if (due.length === 0) break;
        for (const alarm of due) await ring(alarm);
      }
      for (const alarm of alarms) set(alarm);
    },
  };
}

const longestTimerMs = 2 ** 31 - 1;
