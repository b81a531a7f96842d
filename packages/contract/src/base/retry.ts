import { SlipwayError } from "./errors.ts";

export interface RetryOptions {
  /** Before each further try. When there are no more, the failure is thrown. */
  readonly waitsMs: Iterable<number>;
  /** Whether it is worth another try. Left out: an error says so itself. */
  readonly mayPass?: (error: unknown) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Tries until it works. An abort ends the wait with the signal's reason; the work minds the signal by itself. */
export async function retry<T>(
  work: () => Promise<T>,
  { waitsMs, mayPass = mayPassByItself, signal }: RetryOptions,
): Promise<T> {
  const waits = waitsMs[Symbol.iterator]();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const wait = waits.next();
      if (wait.done || !mayPass(error)) throw error;
      await pause(wait.value, signal);
    }
  }
}

/** Waits that double up to the longest one, without end. */
export function* doubling(firstMs: number, longestMs: number): Generator<number> {
  for (let waitMs = firstMs; ; waitMs = Math.min(2 * waitMs, longestMs)) yield waitMs;
}

/** Fails with the signal's reason as soon as it aborts. */
export function pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, waitMs);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
  });
}

function mayPassByItself(error: unknown): boolean {
  return error instanceof SlipwayError && error.retry !== "never";
}
