import type { CreateSandbox, SandboxState, SnapshotId } from "@slipway/contract";

/** What the keeper does for a sandbox on its own, and when. Times are milliseconds since 1970. */
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
  /** The end that an `expiring` event has announced. */
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

/** When the sandbox's time runs out. */
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

/** Announces an end within the grace period at once. */
function expiring(timing: Timing, memory: TimingMemory): Due[] {
  const end = endOf(timing);
  if (memory.toldEnd === end) return [];
  return [{ at: Math.max(end - timing.request.expiringGraceMs, timing.stateChangedAt), action: "expiring" }];
}

/** The use of a sandbox, as its agent reports it. */
export interface Use {
  readonly operations: number;
  readonly sinceMs: number;
}

/** Sleep now, or check again later: during work, after a quarter of the idle time. */
export function decideIdle(
  use: Use,
  idleMs: number,
  nowMs: number,
): { sleep: true } | { sleep: false; checkAt: number } {
  if (use.operations > 0) return { sleep: false, checkAt: nowMs + Math.max(100, Math.ceil(idleMs / 4)) };
  if (use.sinceMs >= idleMs) return { sleep: true };
  return { sleep: false, checkAt: nowMs + (idleMs - use.sinceMs) };
}
