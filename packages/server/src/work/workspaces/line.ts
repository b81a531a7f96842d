import { createLanes, SlipwayError } from "@slipway/contract";

/** Runs work with the same key one after the other. Disposing of it aborts all work and waits for its end. */
export function createLines() {
  const lanes = createLanes<string>();
  const ending = new AbortController();
  return {
    /** Aborting `signal` only ends the wait, not the work: others may wait for the same. */
    run: <T>(key: string, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> =>
      unlessAborted(
        lanes.run(key, () => work(ending.signal)),
        signal,
      ),
    async [Symbol.asyncDispose]() {
      ending.abort();
      await lanes.settled();
    },
  };
}

/** Fails with `aborted` as soon as the signal aborts; the work continues. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(new SlipwayError("aborted", "the caller gave up", { cause: signal.reason }));
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
