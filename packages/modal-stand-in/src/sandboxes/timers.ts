import type { Clock } from "../clock.ts";
import { idledOut, type Sandbox, timedOut } from "./sandbox.ts";

/** Ends the sandbox at the end of its lifetime, or when nobody has used it for its idle time. */
export function startTimers(sandbox: Sandbox, clock: Clock): Disposable {
  const { timeoutSecs, idleTimeoutSecs } = sandbox.definition;
  const life = clock.at(sandbox.startedAtMs + timeoutSecs * 1000, () => sandbox.end(timedOut));
  let idle: Disposable | undefined;
  const watchIdle = (idleMs: number) => {
    idle = clock.at(sandbox.usedAtMs + idleMs, async () => {
      if (await isBusy(sandbox)) sandbox.usedAtMs = clock.now();
      if (clock.now() - sandbox.usedAtMs >= idleMs) await sandbox.end(idledOut);
      else watchIdle(idleMs);
    });
  };
  if (idleTimeoutSecs !== undefined) watchIdle(idleTimeoutSecs * 1000);
  return {
    [Symbol.dispose]() {
      life[Symbol.dispose]();
      idle?.[Symbol.dispose]();
    },
  };
}

async function isBusy({ execs }: Sandbox): Promise<boolean> {
  const commands = await Promise.allSettled(execs.values());
  return commands.some((started) => started.status === "fulfilled" && started.value.end === undefined);
}
