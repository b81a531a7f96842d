import { SlipwayError } from "@slipway/contract";

/** How many sandboxes the account may run at once. Whoever asks first is first. */
export interface Slots {
  /** Waits for a free one. Fails with `aborted` when the caller gives up. */
  take(name: string, signal?: AbortSignal): Promise<void>;
  /** For what runs already. */
  occupy(name: string): void;
  release(name: string): void;
}

export function createSlots(most: number): Slots {
  const taken = new Set<string>();
  const waiting: { name: string; enter: () => void }[] = [];
  const admit = () => {
    while (taken.size < most) {
      const next = waiting.shift();
      if (next === undefined) return;
      taken.add(next.name);
      next.enter();
    }
  };
  return {
    take(name, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiter = { name, enter: resolve };
      const leave = () => {
        const at = waiting.indexOf(waiter);
        if (at < 0) return;
        waiting.splice(at, 1);
        const message = `Gave up waiting for one of the ${most} sandboxes that may run at once (MODAL_MAX_CONCURRENT).`;
        reject(new SlipwayError("aborted", message));
      };
      waiting.push(waiter);
      admit();
      if (signal?.aborted) leave();
      signal?.addEventListener("abort", leave, { once: true });
      return promise.finally(() => signal?.removeEventListener("abort", leave));
    },
    occupy: (name) => void taken.add(name),
    release(name) {
      if (taken.delete(name)) admit();
    },
  };
}
