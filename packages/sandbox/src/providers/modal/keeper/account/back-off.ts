import { abortable } from "../../../../abort.ts";
import type { Clock } from "../../../../keeper/clock.ts";
import { isPassing } from "./errors.ts";

export interface BackOff {
  readonly clock: Clock;
  readonly random?: () => number;
  readonly signal?: AbortSignal | undefined;
}

const attempts = 7;
const firstPauseMs = 250;
const longestPauseMs = 10_000;

/** Repeats a call that Modal has refused for now, at most for half a minute. */
export async function withBackOff<T>(
  call: () => Promise<T>,
  { clock, random = Math.random, signal }: BackOff,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt === attempts || !isPassing(error) || signal?.aborted) throw error;
    }
    const longestMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempt - 1));
    const pauseMs = longestMs * (0.5 + random() / 2);
    await abortable<void>(signal, ({ resolve }) => clock.after(pauseMs, () => resolve()));
  }
}
