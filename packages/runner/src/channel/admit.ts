import { type RunnerEvent, runChannel } from "@slipway/contract";

export interface Filling {
  readonly bytes: number;
  /** The number that the event would get. */
  readonly next: number;
}

/** Half of what the host accepts of a run. */
const maxSpoolBytes = runChannel.maxRunBytes / 2;
/** Reserved for events other than text. */
const reservedBytes = maxSpoolBytes / 4;
const reservedNumbers = 4096;
/** Reserved for how agents ended. */
const lastNumbers = 256;

/** Whether the spool takes an event. Text runs out of room first, ends never. The last number is the run's end. */
export function admits(event: RunnerEvent, { bytes, next }: Filling): boolean {
  const numbers = runChannel.maxEventsPerRun - next;
  if (event.type === "ended") return numbers >= 0;
  if (isEnd(event)) return numbers > 0;
  if (isText(event)) return bytes < maxSpoolBytes && numbers > reservedNumbers;
  return bytes < maxSpoolBytes + reservedBytes && numbers > lastNumbers;
}

function isEnd(event: RunnerEvent): boolean {
  return event.type === "resumed" || (event.type === "agent" && event.event.type === "ended");
}

function isText(event: RunnerEvent): boolean {
  return event.type === "agent" && event.event.type === "text";
}
