import type { SandboxEvent, SandboxId } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";

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

/** Follows the provider's kept events as far as it is asked to. */
export function createRunTimes(provider: Pick<SandboxProvider, "events">) {
  const times = new Map<SandboxId, RunTime>();
  let after = 0;
  let reading: Promise<void> = Promise.resolve();
  const read = async () => {
    for await (const event of provider.events({ after, follow: false })) {
      // Two reads at the same time never take one event in twice.
      if (event.sequence <= after) continue;
      after = event.sequence;
      const time = afterEvent(times.get(event.sandbox), event);
      if (time !== undefined) times.set(event.sandbox, time);
    }
  };
  return {
    /** As of an event that has happened before the call. Undefined: no event tells of it. */
    async of(sandbox: SandboxId): Promise<RunTime | undefined> {
      reading = reading.catch(() => {}).then(read);
      await reading;
      return times.get(sandbox);
    },
    forget: (sandbox: SandboxId) => void times.delete(sandbox),
  };
}
