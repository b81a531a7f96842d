import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";

const usualWaitsMs = [500, 2000, 10_000, 30_000];

/** What passes by itself is waited for. */
export async function patiently<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  waitsMs: readonly number[] = usualWaitsMs,
): Promise<T> {
  for (const waitMs of waitsMs) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SlipwayError) || error.retry === "never") throw error;
      await delay(waitMs, undefined, { signal });
    }
  }
  return await work();
}
