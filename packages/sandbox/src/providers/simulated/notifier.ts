import { SlipwayError } from "@slipway/contract";

/** Wakes everyone who waits for a change. Costs nothing while nobody does. */
export class Notifier {
  #waiting: Set<() => void> | null = null;

  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting !== null) for (const wake of waiting) wake();
  }

  /** Resolves at the next change; rejects when the signal comes first. */
  wait(signal?: AbortSignal): Promise<void> {
    this.#waiting ??= new Set();
    const waiting = this.#waiting;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(abortError(signal));
      const wake = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const abort = () => {
        waiting.delete(wake);
        reject(abortError(signal));
      };
      waiting.add(wake);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }
}

/** The promise's outcome, or the abort if that comes first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      promise.catch(() => undefined);
      return reject(abortError(signal));
    }
    const abort = () => reject(abortError(signal));
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** A signal of the provider's own carries its error; a caller's means that the caller gave up. */
function abortError(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof SlipwayError
    ? reason
    : new SlipwayError("aborted", "The caller gave up on the call.", { cause: reason });
}
