import { type Clock, createManualClock } from "./manual-clock.ts";

/** A clock that runs `factor` times as fast as the real one and agrees with it at `startMs`. */
export interface Speed {
  /** Real time. */
  readonly startMs: number;
  readonly factor: number;
  /** How far it is ahead of other clocks, in its own time. */
  readonly aheadMs?: number;
}

export function scaledNow({ startMs, factor, aheadMs = 0 }: Speed): number {
  return Math.round(startMs + aheadMs + (Date.now() - startMs) * factor);
}

/** The longest delay of a real timer. */
const maxTimeoutMs = 2 ** 31 - 1;

/** Uses one real timer for all callbacks. */
export function createScaledClock(speed: Speed): Clock & Disposable {
  const manual = createManualClock(scaledNow(speed));
  let timer: NodeJS.Timeout | undefined;
  let armedAt = Number.POSITIVE_INFINITY;
  let isAdvancing = false;
  const now = () => Math.max(manual.now(), scaledNow(speed));

  const arm = () => {
    const nextAt = manual.nextAt ?? Number.POSITIVE_INFINITY;
    if (isAdvancing || nextAt >= armedAt) return;
    armedAt = nextAt;
    clearTimeout(timer);
    timer = setTimeout(() => void advance(), Math.min(maxTimeoutMs, Math.max(0, (nextAt - now()) / speed.factor)));
  };
  const advance = async () => {
    armedAt = Number.POSITIVE_INFINITY;
    isAdvancing = true;
    await manual.advance(now() - manual.now());
    isAdvancing = false;
    arm();
  };

  return {
    now,
    after(delayMs, callback) {
      const cancel = manual.after(now() - manual.now() + Math.max(0, delayMs), callback);
      arm();
      return cancel;
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
