import { afterEnd, type End, endAs, endText, hasCode, printable, SlipwayError } from "@slipway/contract";
import { isFullDisk } from "../full-disk.ts";
import { hasFilledDisk } from "./leave.ts";
import { runIdOf, speakerOf } from "./names.ts";
import { attemptEnded, type Life } from "./reports.ts";
import type { Running } from "./running.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

const fullDisk = "The sandbox was ended: its disk was full. Leave less on it.";

/** The attempt's end by its run's end. A run cannot claim that its work was merged, and nothing here cancels one. */
export async function endOfRun(world: AttemptSurroundings, end: End, { parts }: Running): Promise<End> {
  if (end.reason === "completed" || end.reason === "cancelled")
    return endAs(end.reason, "the run ended by itself before its work was merged");
  // A respawn from the last checkpoint would fill the disk again.
  const isFull = end.reason === "runner_lost" && (await hasFilledDisk(world, parts.sandbox.id));
  return isFull ? endAs("disk_full", fullDisk) : end;
}

/** The end of an attempt that an error kept from running. */
export function endByError(error: unknown): End {
  if (hasCode(error, "budget_exhausted")) return endAs("budget", error.message);
  const isOwn = error instanceof SlipwayError && error.retry === "never" && !mayPass(error);
  return endAs(isOwn ? "setup_failed" : "unavailable", error instanceof Error ? error.message : String(error));
}

/** A full disk of this machine and a missing repository: they pass, or the user cancels the build. */
function mayPass(error: unknown): boolean {
  return isFullDisk(error) || hasCode(error, "commit_not_found");
}

/** Reports the end, and tells other attempts of a failure. `budgetMicroUsd`: the build's, when money was refused. */
export async function tellEnd(
  { build, bridge, shared, report }: AttemptSurroundings,
  life: Life,
  end: End,
  budgetMicroUsd?: number,
): Promise<void> {
  await report([attemptEnded(life, end, budgetMicroUsd)]);
  if (afterEnd(end) !== "retry") return;
  const [key, from] = [`errors:${runIdOf(life.id, life.respawn, life.part)}`, speakerOf(life)];
  const payload = { title: `${from} has failed`, text: printable(endText(end)).slice(-4000) };
  // Only news: a failure does not matter.
  await bridge.publish(build.id, { topic: "errors", key, from, payload }).catch(() => {});
  shared.changed("errors", from);
}
