import type { AgentEvent, ClaimedEnd, RunnerEvent } from "@slipway/contract";

/** The one end of a turn or a run, its last event. */
export function endOf(events: readonly (AgentEvent | RunnerEvent)[]): ClaimedEnd {
  const ends = events.filter(({ type }) => type === "ended");
  const last = events.at(-1);
  if (last?.type !== "ended" || ends.length > 1) throw new Error(`not one end: ${JSON.stringify(ends)}`);
  return last.end;
}
