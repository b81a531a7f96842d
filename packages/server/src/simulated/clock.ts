import { type Clock, createManualClock } from "./manual-clock.ts";

/** As many times as fast as the real one, from a moment that both have in common. */
export interface Speed {
  /** By the real clock. */
  readonly startMs: number;
  readonly factor: number;
  /** Of all others, by its own time. */
  readonly aheadMs?: number;
}

export function scaledNow({ startMs, factor, aheadMs = 0 }: Speed): number {
  return Math.round(startMs + aheadMs + (Date.now() - startMs) * factor);
}

/** What a real timer holds. */
const maxTimeoutMs = 2 ** 31 - 1;

/** One real timer, however many callbacks are to come. */
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
