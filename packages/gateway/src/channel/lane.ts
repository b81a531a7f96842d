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
