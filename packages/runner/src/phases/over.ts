import type { ClaimedEnd } from "@slipway/contract";

/** Thrown when a task run is over before its offer is merged. */
export class TaskRunOver extends Error {
  readonly end: ClaimedEnd;

  constructor(end: ClaimedEnd) {
    super(end.message);
    this.end = end;
  }
}
