import { retry } from "@slipway/contract";

const usualWaitsMs = [500, 2000, 10_000, 30_000];

/** Tries again what may pass by itself. Once the signal aborts, a failure is the signal's reason. */
export async function patiently<T>(work: () => Promise<T>, signal: AbortSignal, waitsMs = usualWaitsMs): Promise<T> {
  return await retry(work, { waitsMs, signal }).catch((error) => {
    signal.throwIfAborted();
    throw error;
  });
}
