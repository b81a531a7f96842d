import type { CreateSandbox, SandboxState } from "@slipway/contract";

/** What the keeper does for a sandbox by itself, and when. Times are milliseconds since 1970. */
export interface Due {
  readonly at: number;
  readonly action: "expiring" | "expire" | "check_idle" | "checkpoint" | "sleep_out";
}

export interface Timing {
  readonly state: SandboxState;
  readonly stateChangedAt: number;
  readonly expiresAt: number;
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
  const dues =
    timing.state === "running"
      ? runningDues(timing, memory)
      : timing.state === "sleeping"
        ? sleepingDues(timing, memory)
        : [];
  return dues.reduce<Due | null>((first, due) => (first === null || due.at < first.at ? due : first), null);
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
