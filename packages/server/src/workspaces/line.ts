import { SlipwayError } from "@slipway/contract";

/** Runs what has the same key one after the other. What is begun is ended, whoever gives up waiting for it. */
export function createLines(): <T>(key: string, work: () => Promise<T>, signal?: AbortSignal) => Promise<T> {
  const lines = new Map<string, Promise<unknown>>();
  return async (key, work, signal) => {
    const before = lines.get(key) ?? Promise.resolve();
    const own = before.then(work, work);
    lines.set(key, own);
    const leave = () => {
      if (lines.get(key) === own) lines.delete(key);
    };
    own.then(leave, leave);
    return await unlessAborted(own, signal);
  };
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
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
