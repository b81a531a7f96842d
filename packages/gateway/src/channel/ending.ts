import { type End, SlipwayError } from "@slipway/contract";

/** Whether and how a run has ended. The first end counts. */
export interface Ending {
  readonly reached: End | undefined;
  readonly promise: Promise<End>;
  reach(end: End): void;
  /** Fails with `run_ended`. */
  requireRunning(): void;
}

export function createEnding(): Ending {
  const { promise, resolve } = Promise.withResolvers<End>();
  let reached: End | undefined;
  return {
    promise,
    get reached() {
      return reached;
    },
    reach(end) {
      reached ??= end;
      resolve(reached);
    },
    requireRunning() {
      if (reached !== undefined) throw new SlipwayError("run_ended", `the run has ended: ${reached.reason}`);
    },
  };
}
