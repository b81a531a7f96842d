/**
 * How the open requests of one run are reserved. An estimate may be too low, and the ledger books what the endpoint
 * counts. So at most one request is reserved by estimate, and a run exceeds its budget by at most that response.
 */
export interface Estimates {
  /** Reserves by estimate until disposed. Undefined: another request does. */
  take(): Disposable | undefined;
  /** Records how far a reservation exceeds its estimate, until disposed. */
  exceed(microUsd: number): Disposable;
  readonly exceededMicroUsd: number;
  /** Resolves when the next of them is disposed. */
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
