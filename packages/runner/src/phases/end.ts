import type { RunnerEnd } from "../supervise/end.ts";

/** A task run is over before its offer is merged. */
export class TaskRunEnd extends Error {
  readonly reason: RunnerEnd["reason"];

  constructor({ reason, message }: RunnerEnd) {
    super(message);
    this.reason = reason;
  }
}
