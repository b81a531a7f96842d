/** Does one piece of work after another, in the order of the calls. A failure is its caller's alone. */
export type Lane = <T>(work: () => Promise<T>) => Promise<T>;

export function createLane(): Lane {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** Writes one value after another, of those that wait only the newest. Answers when the value, or a newer one, is written. */
export function createSaver<T>(write: (value: T) => Promise<void>): (value: T) => Promise<void> {
  const inTurn = createLane();
  let newest: { readonly value: T } | undefined;
  const writeNewest = async () => {
    // It was overtaken while it waited, and written with the newer one.
    if (newest === undefined) return;
    const writing = newest;
    newest = undefined;
    try {
      await write(writing.value);
    } catch (error) {
      newest ??= writing;
      throw error;
    }
  };
  return (value) => {
    newest = { value };
    return inTurn(writeNewest);
  };
}

/** A lane for each key. */
export interface Lanes<K> {
  run<T>(key: K, work: () => Promise<T>): Promise<T>;
  /** Answers when all work that was asked for by now has ended, however it did. */
  settled(): Promise<void>;
}

export function createLanes<K>(): Lanes<K> {
  const lasts = new Map<K, Promise<unknown>>();
  return {
    run(key, work) {
      const result = (lasts.get(key) ?? Promise.resolve()).then(work);
      const settled = result.then(
        () => leave(),
        () => leave(),
      );
      const leave = () => {
        if (lasts.get(key) === settled) lasts.delete(key);
      };
      lasts.set(key, settled);
      return result;
    },
    async settled() {
      await Promise.all(lasts.values());
    },
  };
}
