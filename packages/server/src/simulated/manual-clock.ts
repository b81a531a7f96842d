/** The clock of a simulation. */
export interface Clock {
  now(): number;
  /** Calls back once after the delay; the returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** A clock that only moves when told to. */
export interface ManualClock extends Clock {
  /** Lets time pass. Runs due callbacks in order, each with everything it triggers, before it resolves. */
  advance(ms: number): Promise<void>;
  /** The number of pending callbacks. */
  readonly pending: number;
  /** When the next callback is due, if any. */
  readonly nextAt: number | undefined;
}

export function createManualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  const timers = new TimerHeap();
  let now = startMs;
  let order = 0;
  return {
    now: () => now,
    after(delayMs, callback) {
      const timer: Timer = { at: now + Math.max(0, delayMs), order: order++, callback };
      timers.push(timer);
      return () => timers.cancel(timer);
    },
    async advance(ms) {
      const until = now + ms;
      await settled();
      for (let next = timers.due(until); next !== undefined; next = timers.due(until)) {
        now = next.at;
        for (let same: Timer | undefined = next; same !== undefined; same = timers.due(now)) timers.pop()?.();
        await settled();
      }
      now = until;
    },
    get pending() {
      return timers.size;
    },
    get nextAt() {
      return timers.due(Number.POSITIVE_INFINITY)?.at;
    },
  };
}

/** Resolves after all pending promise reactions. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface Timer {
  readonly at: number;
  /** Timers of one moment run in the order they were set. */
  readonly order: number;
  callback: (() => void) | null;
}

/** A binary heap. Cancelled timers stay until they are due or outnumber the others. */
class TimerHeap {
  #timers: Timer[] = [];
  #cancelled = 0;

  get size(): number {
    return this.#timers.length - this.#cancelled;
  }

  push(timer: Timer): void {
    this.#timers.push(timer);
    this.#rise(this.#timers.length - 1);
  }

  cancel(timer: Timer): void {
    if (timer.callback === null) return;
    timer.callback = null;
    this.#cancelled++;
    if (this.#cancelled > 64 && this.#cancelled * 2 > this.#timers.length) this.#compact();
  }

  due(until: number): Timer | undefined {
    while (this.#timers[0]?.callback === null) {
      this.#remove();
      this.#cancelled--;
    }
    const first = this.#timers[0];
    return first !== undefined && first.at <= until ? first : undefined;
  }

  /** Removes the first timer and returns its callback. */
  pop(): (() => void) | null {
    const timer = this.#remove();
    const callback = timer?.callback ?? null;
    if (timer !== undefined) timer.callback = null;
    return callback;
  }

  #compact(): void {
    this.#timers = this.#timers.filter(({ callback }) => callback !== null).sort((a, b) => (before(a, b) ? -1 : 1));
    this.#cancelled = 0;
  }

  #remove(): Timer | undefined {
    const first = this.#timers[0];
    const last = this.#timers.pop();
    if (last !== undefined && last !== first) {
      this.#timers[0] = last;
      this.#sink(0);
    }
    return first;
  }

  #rise(index: number): void {
    const timers = this.#timers;
    for (let child = index; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.#swapIfLater(timers, parent, child)) return;
      child = parent;
    }
  }

  #sink(index: number): void {
    const timers = this.#timers;
    for (let parent = index; ; ) {
      const left = 2 * parent + 1;
      const right = left + 1;
      const a = timers[left];
      const b = timers[right];
      if (a === undefined) return;
      const child = b !== undefined && before(b, a) ? right : left;
      if (!this.#swapIfLater(timers, parent, child)) return;
      parent = child;
    }
  }

  #swapIfLater(timers: Timer[], parent: number, child: number): boolean {
    const above = timers[parent];
    const below = timers[child];
    if (above === undefined || below === undefined || !before(below, above)) return false;
    timers[parent] = below;
    timers[child] = above;
    return true;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
