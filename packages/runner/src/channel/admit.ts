import { type RunnerEvent, runChannel } from "@slipway/contract";

export interface Filling {
  readonly bytes: number;
  /** The number that the event would get. */
  readonly next: number;
}

/** Half of what the host takes of a run. */
const maxSpoolBytes = runChannel.maxRunBytes / 2;
/** Kept free for what is not text. */
const reservedBytes = maxSpoolBytes / 4;
const reservedNumbers = 4096;
/** Kept free for what tells how agents ended. */
const lastNumbers = 256;

/** Whether the spool takes an event: text first has no more room, then the rest, ends never; the last number is the run's end's. */
export function admits(event: RunnerEvent, { bytes, next }: Filling): boolean {
  const numbers = runChannel.maxEventsPerRun - next;
  if (event.type === "ended") return numbers >= 0;
  if (isEnd(event)) return numbers > 0;
  if (isText(event)) return bytes < maxSpoolBytes && numbers > reservedNumbers;
  return bytes < maxSpoolBytes + reservedBytes && numbers > lastNumbers;
}

function isEnd(event: RunnerEvent): boolean {
  return event.type === "resumed" || (event.type === "agent" && ["done", "error"].includes(event.event.type));
}

function isText(event: RunnerEvent): boolean {
  return event.type === "agent" && event.event.type === "text";
}
