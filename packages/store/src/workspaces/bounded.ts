/** Runs work side by side, so many at a time. The first failure is thrown by the next call, and by `end`. */
export interface Bounded {
  /** Resolves when the work has begun. */
  add(work: () => Promise<void>): Promise<void>;
  /** Resolves when nothing runs any more. */
  end(): Promise<void>;
}

export function createBounded(atOnce: number): Bounded {
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  return {
    async add(work) {
      while (running.size >= atOnce && failures.length === 0) await Promise.race(running);
      if (failures.length > 0) throw failures[0];
      const done: Promise<void> = work()
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(done));
      running.add(done);
    },
    async end() {
      await Promise.all(running);
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** Works ahead on the next items, and yields results in the items' order. */
export async function* ahead<T, R>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const begun: Promise<R>[] = [];
  try {
    for (const item of items) {
      const result = work(item);
      // Its failure is thrown when it is its turn.
      result.catch(() => undefined);
      begun.push(result);
      if (begun.length >= atOnce) yield await (begun.shift() as Promise<R>);
    }
    while (begun.length > 0) yield await (begun.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(begun);
  }
}
