import { SlipwayError } from "@slipway/contract";

export function abortedError(signal: AbortSignal | undefined): SlipwayError {
  return new SlipwayError("aborted", "The caller aborted the call.", { cause: signal?.reason });
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortedError(signal);
}

export interface Waiter<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise that the signal rejects. `register` takes its waiter and returns what to do on an abort. */
export function abortable<T>(signal: AbortSignal | undefined, register: (waiter: Waiter<T>) => () => void): Promise<T> {
  // Without a signal this costs no more than the promise.
  if (signal === undefined) return new Promise((resolve, reject) => void register({ resolve, reject }));
  if (signal.aborted) return Promise.reject(abortedError(signal));
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const forget = register({ resolve, reject });
  const onAbort = () => {
    forget();
    reject(abortedError(signal));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}
