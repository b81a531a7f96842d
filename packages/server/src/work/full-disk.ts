import { hasCode } from "@slipway/contract";

/**
 * Whether this machine has no room, which passes. A sandbox that has used up its own disk is ended for it, and tells so by
 * its end: see leave.ts.
 */
export function isFullDisk(error: unknown): boolean {
  return hasCode(error, "out_of_disk") || (error instanceof Error && "code" in error && error.code === "ENOSPC");
}
