import type { CreateSandbox, SandboxState, SnapshotId } from "@slipway/contract";

/** What the keeper does for a sandbox by itself, and when. Times are milliseconds since 1970. */
export interface Due {
  readonly at: number;
  readonly action: "expiring" | "expire" | "check_idle" | "checkpoint" | "sleep_out" | "keep_slept_out";
}

export interface Timing {
  readonly state: SandboxState;
  readonly stateChangedAt: number;
  readonly expiresAt: number;
  readonly owedSnapshot: SnapshotId | null;
  readonly request: Pick<CreateSandbox, "idleMs" | "sleepingMs" | "checkpointMs" | "expiringGraceMs">;
}

/** What the keeper remembers between two decisions. */
export interface TimingMemory {
  /** The end that `expiring` has been told for. */
  readonly toldEnd: number | null;
  readonly checkIdleAt: number;
  readonly lastCheckpointAt: number;
}

export function nextDue(timing: Timing, memory: TimingMemory): Due | null {
  return duesOf(timing, memory).reduce<Due | null>(
    (first, due) => (first === null || due.at < first.at ? due : first),
    null,
  );
}

function duesOf(timing: Timing, memory: TimingMemory): Due[] {
  switch (timing.state) {
    case "running":
      return runningDues(timing, memory);
    case "sleeping":
      return sleepingDues(timing, memory);
    case "stopped":
      return timing.owedSnapshot === null ? [] : [{ at: timing.stateChangedAt, action: "keep_slept_out" }];
    default:
      return [];
  }
}

/** When the sandbox ends by time if nothing happens before. */
export function endOf({ state, stateChangedAt, expiresAt, request }: Timing): number {
  return state === "sleeping" ? stateChangedAt + request.sleepingMs : expiresAt;
}

function runningDues(timing: Timing, memory: TimingMemory): Due[] {
  const { request } = timing;
  const dues: Due[] = [{ at: timing.expiresAt, action: "expire" }, ...expiring(timing, memory)];
  if (request.idleMs !== null) dues.push({ at: memory.checkIdleAt, action: "check_idle" });
  if (request.checkpointMs !== null)
    dues.push({ at: memory.lastCheckpointAt + request.checkpointMs, action: "checkpoint" });
  return dues;
}

function sleepingDues(timing: Timing, memory: TimingMemory): Due[] {
  return [{ at: endOf(timing), action: "sleep_out" }, ...expiring(timing, memory)];
}

/** An end that comes sooner than the grace period is told at once. */
function expiring(timing: Timing, memory: TimingMemory): Due[] {
  const end = endOf(timing);
  if (memory.toldEnd === end) return [];
  return [{ at: Math.max(end - timing.request.expiringGraceMs, timing.stateChangedAt), action: "expiring" }];
}

/** What the agent says of its use. */
export interface Use {
  readonly operations: number;
  readonly sinceMs: number;
}

/** Sleep now, or look again at a later time. Work under way is looked at again after a quarter of the idle time. */
export function decideIdle(
  use: Use,
  idleMs: number,
  nowMs: number,
): { sleep: true } | { sleep: false; checkAt: number } {
  if (use.operations > 0) return { sleep: false, checkAt: nowMs + Math.max(100, Math.ceil(idleMs / 4)) };
  if (use.sinceMs >= idleMs) return { sleep: true };
  return { sleep: false, checkAt: nowMs + (idleMs - use.sinceMs) };
}

/** Where sleep is a signal, a program inside can arrange to be continued. */
export function canWrite(state: SandboxState, { isFirm }: { readonly isFirm: boolean }): boolean {
  return state === "running" || (state === "sleeping" && !isFirm);
}

/** A look at how much of the disk a sandbox takes. */
export interface DiskLook {
  readonly at: number;
  readonly tookMs: number;
  /** What had been written to the whole file system by then. */
  readonly writtenBytes: number;
}

/** Less written than this is no reason to look. */
const worthALookBytes = 4 * 1024 * 1024;
/** Looking takes at most a tenth of the time, as long as little is written. */
const restFactor = 10;
/** What one deletes hides what another writes: so now and then a look without a reason. */
const oldestLookMs = 60_000;

/** A sandbox that makes looks slow does not put the next one off for long: much written is always a reason. */
export function isDiskLookDue(last: DiskLook, writtenBytes: number, limitBytes: number, nowMs: number): boolean {
  const growth = writtenBytes - last.writtenBytes;
  if (growth >= limitBytes / 4) return true;
  const rested = nowMs - last.at >= restFactor * last.tookMs;
  return rested && (growth >= worthALookBytes || nowMs - last.at >= oldestLookMs);
}

/** What each may still write under the floor, which is enough to start and to remove files: more as long as half of it is left. */
const underFloorBytes = { half: 16 * 1024 * 1024, less: 4 * 1024 * 1024 };

/** Whom to stop when less is free than is to stay free: the one that has written most since then; null when none has. */
export function decideStop<T extends { readonly grownBytes: number }>(
  writers: readonly T[],
  freeBytes: number,
  minFreeBytes: number,
): T | null {
  const allowedBytes = freeBytes < minFreeBytes / 2 ? underFloorBytes.less : underFloorBytes.half;
  const [most] = writers.toSorted((a, b) => b.grownBytes - a.grownBytes);
  return most !== undefined && most.grownBytes > allowedBytes ? most : null;
}
