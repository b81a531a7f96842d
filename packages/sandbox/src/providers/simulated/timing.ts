import type { CreateSandbox, SandboxState } from "@slipway/contract";

/** What a sandbox's time depends on. Times are the clock's milliseconds. */
export interface Timing {
  readonly state: SandboxState;
  readonly stateChangedAt: number;
  readonly expiresAt: number;
  /** The end that has been told by `expiring`. */
  readonly toldEnd: number | null;
  readonly lastUsedAt: number;
  /** Operations under way. */
  readonly uses: number;
  readonly lastCheckpointAt: number;
  readonly request: Pick<CreateSandbox, "idleMs" | "sleepingMs" | "checkpointMs" | "expiringGraceMs">;
}

export interface Due {
  readonly at: number;
  readonly action: "tell_end" | "expire" | "sleep_out" | "check_idle" | "checkpoint";
}

/** When a sandbox in this state ends by time. */
export function endOf({ state, stateChangedAt, expiresAt, request }: Timing): number {
  return state === "sleeping" ? stateChangedAt + request.sleepingMs : expiresAt;
}

/** What happens to the sandbox by itself next; null: nothing. */
export function nextDue(timing: Timing): Due | null {
  if (timing.state !== "running" && timing.state !== "sleeping") return null;
  const { request, state } = timing;
  const end = endOf(timing);
  const dues: Due[] = [];
  if (timing.toldEnd !== end) dues.push({ at: end - request.expiringGraceMs, action: "tell_end" });
  dues.push({ at: end, action: state === "running" ? "expire" : "sleep_out" });
  if (state === "running" && request.idleMs !== null && timing.uses === 0) {
    dues.push({ at: timing.lastUsedAt + request.idleMs, action: "check_idle" });
  }
  if (state === "running" && request.checkpointMs !== null) {
    dues.push({ at: timing.lastCheckpointAt + request.checkpointMs, action: "checkpoint" });
  }
  return dues.reduce((first, due) => (due.at < first.at ? due : first));
}
