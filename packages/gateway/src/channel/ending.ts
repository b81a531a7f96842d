import { type RunEnd, SlipwayError } from "@slipway/contract";

/** Whether and how a run has ended. The first end counts. */
export interface Ending {
  readonly reached: RunEnd | undefined;
  readonly promise: Promise<RunEnd>;
  reach(end: RunEnd): void;
  /** Fails with `run_ended`. */
  requireRunning(): void;
}

export function createEnding(): Ending {
  const { promise, resolve } = Promise.withResolvers<RunEnd>();
  let reached: RunEnd | undefined;
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
