import type { SandboxState } from "@slipway/contract";

/** Programs inside can continue themselves when sleep is only SIGSTOP. */
export function canWrite(state: SandboxState, { isFirm }: { readonly isFirm: boolean }): boolean {
  return state === "running" || (state === "sleeping" && !isFirm);
}

/** A measurement of a sandbox's disk use. */
export interface DiskLook {
  readonly at: number;
  readonly tookMs: number;
  /** Bytes written to the whole file system by then. */
  readonly writtenBytes: number;
}

/** Fewer written bytes need no look. */
const worthALookBytes = 4 * 1024 * 1024;
/** Looking takes at most a tenth of the time while little is written. */
const restFactor = 10;
/** Deletes by one sandbox hide writes by another, so look from time to time without a reason. */
const oldestLookMs = 60_000;

/** A sandbox that makes looks slow cannot delay the next for long: many written bytes are always a reason. */
export function isDiskLookDue(last: DiskLook, writtenBytes: number, limitBytes: number, nowMs: number): boolean {
  const growth = writtenBytes - last.writtenBytes;
  if (growth >= limitBytes / 4) return true;
  const rested = nowMs - last.at >= restFactor * last.tookMs;
  return rested && (growth >= worthALookBytes || nowMs - last.at >= oldestLookMs);
}

/** What each may still write below the floor, enough to start and to delete files; less when half of the floor is gone. */
const underFloorBytes = { half: 16 * 1024 * 1024, less: 4 * 1024 * 1024 };

/** The sandbox to stop when too little is free: the one that has written most since then; null when none has. */
export function decideStop<T extends { readonly grownBytes: number }>(
  writers: readonly T[],
  freeBytes: number,
  minFreeBytes: number,
): T | null {
  const allowedBytes = freeBytes < minFreeBytes / 2 ? underFloorBytes.less : underFloorBytes.half;
  const [most] = writers.toSorted((a, b) => b.grownBytes - a.grownBytes);
  return most !== undefined && most.grownBytes > allowedBytes ? most : null;
}
