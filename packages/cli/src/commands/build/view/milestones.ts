import type { EventType } from "@slipway/contract";
import type { Colour, Paint } from "../../../terminal/terminal.ts";
import { eventText, type Told } from "./events.ts";

/** Frequent events that tell a user little. */
const quiet: readonly EventType[] = ["sandbox.changed", "checkpoint.made", "merge.tested"];

export function isQuiet({ type }: Pick<Told, "type">): boolean {
  return quiet.includes(type);
}

const [good, bad, trouble, plain] = [
  ["✓", "green"],
  ["✗", "red"],
  ["!", "yellow"],
  ["·", "dim"],
] as const satisfies readonly (readonly [string, Colour])[];

const milestones: Readonly<Partial<Record<EventType, readonly [string, Colour]>>> = {
  "intent.drafted": plain,
  "intent.edited": plain,
  "intent.locked": good,
  "plan.made": good,
  "remaining.planned": plain,
  "remaining.unplannable": bad,
  "satisfaction.checked": plain,
  "attempt.respawned": trouble,
  "task.retried": trouble,
  "task.merged": good,
  "task.satisfied": good,
  "task.failed": bad,
  "candidate.refused": trouble,
  "merge.rejected": trouble,
  "merge.test_failed": trouble,
  "merge.conflict": trouble,
  "merge.doubted": trouble,
  "dispute.opened": trouble,
  "dispute.settled": plain,
  "preview.ready": good,
  "budget.warned": trouble,
  "build.paused": trouble,
  "build.resumed": plain,
};

/** The line for an event that deserves one beside the live view. */
export function milestoneText(event: Told, paint: Paint): string | undefined {
  const mark = isForUser(event) ? trouble : milestones[event.type];
  return mark === undefined || isOfTheEnd(event) ? undefined : `${paint(mark[1], mark[0])} ${eventText(event)}`;
}

/** The end of a build fails its open tasks; only the end itself is worth a line. */
function isOfTheEnd({ type, data }: Told): boolean {
  return type === "task.failed" && data.failure.reason === "build-ended";
}

/** A dispute that nobody but the user can end. */
function isForUser({ type, data }: Told): boolean {
  return type === "dispute.settled" && data.wrong !== "app" && !data.replaced;
}
