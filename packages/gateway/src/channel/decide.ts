import type { NumberedEvent } from "@slipway/contract";

export interface Batch {
  /** Events before the awaited number: repeats or forgeries. */
  readonly known: readonly NumberedEvent[];
  /** Events from the awaited number up to an end of the run. */
  readonly fresh: readonly NumberedEvent[];
  /** Events after the end of the run. */
  readonly late: readonly NumberedEvent[];
}

/** Undefined: the batch has a gap, inside or before it. */
export function sortBatch(events: readonly NumberedEvent[], next: number): Batch | undefined {
  const first = events[0]?.sequence ?? next;
  if (first > next || events.some(({ sequence }, index) => sequence !== first + index)) return undefined;
  const known = events.slice(0, next - first);
  const rest = events.slice(next - first);
  const end = rest.findIndex(({ event }) => event.type === "ended");
  const count = end < 0 ? rest.length : end + 1;
  return { known, fresh: rest.slice(0, count), late: rest.slice(count) };
}
