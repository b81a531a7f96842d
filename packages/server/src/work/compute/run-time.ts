import type { SandboxEvent } from "@slipway/contract";

/** How long a sandbox has run, by the provider's own events. */
export interface RunTime {
  /** Until it last came to rest. */
  readonly ms: number;
  /** Null: it does not run. */
  readonly since: number | null;
  /** It is being made or started. */
  readonly isStarting: boolean;
}

const unseen: RunTime = { ms: 0, since: null, isStarting: false };

export function ranAt({ ms, since }: RunTime, nowMs: number): number {
  return since === null ? ms : ms + Math.max(0, nowMs - since);
}

/** A sandbox runs, and costs, from `running` until any other state. */
export function afterEvent(before: RunTime | undefined, event: SandboxEvent): RunTime | undefined {
  const time = before ?? unseen;
  switch (event.type) {
    case "sandbox.destroyed":
      return { ms: ranAt(time, event.at), since: null, isStarting: false };
    case "sandbox.state_changed":
      if (event.to === "running") return { ...time, since: time.since ?? event.at, isStarting: false };
      return { ms: ranAt(time, event.at), since: null, isStarting: event.to === "creating" };
    default:
      return before;
  }
}
