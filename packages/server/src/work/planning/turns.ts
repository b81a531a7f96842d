/** Runs at most so many at once; others wait in order of arrival. */
export function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let busy = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (busy < most) busy++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Hands its place to the next in line, so that no newcomer takes it.
      const next = waiting.shift();
      if (next === undefined) busy--;
      else next();
    }
  };
}
