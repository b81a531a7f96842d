import type { SandboxId } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import { afterEvent, type RunTime } from "./run-time.ts";

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
