import { hasCode } from "@slipway/contract";

/**
 * Whether this machine's disk is full, which passes. A sandbox that fills its own disk is ended instead, and its end says
 * so: see leave.ts.
 */
export function isFullDisk(error: unknown): boolean {
  return hasCode(error, "out_of_disk") || (error instanceof Error && "code" in error && error.code === "ENOSPC");
}
