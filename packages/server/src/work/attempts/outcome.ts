import { type End, endAs, hasCode, SlipwayError } from "@slipway/contract";
import { isFullDisk } from "../full-disk.ts";

/** How an attempt ended by its run's end. Whether something was merged is not for the run to say, nor was it cancelled here. */
export function endOfRun(end: End): End {
  if (end.reason !== "completed" && end.reason !== "cancelled") return end;
  return endAs(end.reason, "the run ended by itself before its work was merged");
}

/** How an attempt ended that never came to a run. */
export function endByError(error: unknown): End {
  const isOwn = error instanceof SlipwayError && error.retry === "never" && !mayPass(error);
  return endAs(isOwn ? "setup_failed" : "unavailable", error instanceof Error ? error.message : String(error));
}

/** A full disk, or a repository of the build that is gone: that comes back, or its user cancels the build. */
function mayPass(error: unknown): boolean {
  return isFullDisk(error) || hasCode(error, "commit_not_found");
}
