import type { BuildId } from "@slipway/contract";
import type { NewEvent, Store } from "@slipway/engine";

/** Stores what happens in builds and wakes their driver. */
export interface Reports {
  /** Stores the reports, then rings. */
  report(build: BuildId, events: readonly NewEvent[]): Promise<void>;
  /** Wakes the build's driver. The coordinator's next sweep makes up for a lost ring. */
  ring(build: BuildId): void;
  /** Sets the only listener: the coordinator. */
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
