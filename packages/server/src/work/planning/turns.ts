/** Runs so many at once; others wait, in the order in which they came. */
export function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let busy = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (busy < most) busy++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The place goes straight to the next one, so that nobody comes in between.
      const next = waiting.shift();
      if (next === undefined) busy--;
      else next();
    }
  };
}
