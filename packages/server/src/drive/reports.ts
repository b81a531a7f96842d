import type { BuildId } from "@slipway/contract";
import type { NewEvent, Store } from "@slipway/engine";

/** Takes in what happens in builds, and wakes whoever drives them. */
export interface Reports {
  /** Stores the reports, then rings. */
  report(build: BuildId, events: readonly NewEvent[]): Promise<void>;
  /** The build has news. Nobody waits for it: the coordinator's next sweep makes up for a lost ring. */
  ring(build: BuildId): void;
  /** Only one listener hears the rings: the coordinator. */
  onRing(listener: (build: BuildId) => void): void;
}

export function createReports({ events }: Pick<Store, "events">): Reports {
  let hear = (_build: BuildId) => {};
  return {
    async report(build, reports) {
      await events.report(build, reports);
      hear(build);
    },
    ring: (build) => hear(build),
    onRing(listener) {
      hear = listener;
    },
  };
}
