/**
 * How the open requests of one run are reserved. An estimate may be too low, and what the endpoint counts is booked: so
 * one at most is reserved by estimate, and a run spends no more than its budget and that one response.
 */
export interface Estimates {
  /** To be reserved by estimate, until it is disposed. Undefined: another request is. */
  take(): Disposable | undefined;
  /** Reserved by so much above the estimate, until it is disposed. */
  exceed(microUsd: number): Disposable;
  readonly exceededMicroUsd: number;
  /** When the next of them is disposed. */
  nextEnd(): Promise<void>;
}

export function createEstimates(): Estimates {
  let isTaken = false;
  let exceededMicroUsd = 0;
  let next = Promise.withResolvers<void>();
  const endsWith = (change: () => void): Disposable => ({
    [Symbol.dispose]() {
      change();
      next.resolve();
      next = Promise.withResolvers();
    },
  });
  return {
    take() {
      if (isTaken) return undefined;
      isTaken = true;
      return endsWith(() => {
        isTaken = false;
      });
    },
    exceed(microUsd) {
      exceededMicroUsd += microUsd;
      return endsWith(() => {
        exceededMicroUsd -= microUsd;
      });
    },
    get exceededMicroUsd() {
      return exceededMicroUsd;
    },
    nextEnd: () => next.promise,
  };
}
