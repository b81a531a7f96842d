import { setTimeout as delay } from "node:timers/promises";
import type { SandboxId } from "@slipway/contract";
import { hasCode } from "@slipway/contract";
import type { ExecLog } from "../../agent/exec/log.ts";
import type { ExecLogs } from "../../agent/exec/logs.ts";

export interface FarLogParts {
  readonly id: SandboxId;
  /** The logs over the sandbox's link. Fails when it does not run. */
  logs(): Promise<ExecLogs>;
  /** Resolves when the sandbox no longer runs, or at the signal. */
  untilEnd(signal: AbortSignal): Promise<void>;
  /** Fails with `sandbox_not_found` when it is destroyed. */
  check(): Promise<unknown>;
}

/** Between two looks at a sandbox that does not run. */
const pauseMs = 1000;

/** Logs inside a sandbox, whose reader is told when that ends. */
export function farLogs(parts: FarLogParts): ExecLogs {
  const told = <T>(work: Promise<T>) => work.catch((error) => explain(parts, error));
  return {
    open: async (...given) => {
      const log = await told((await parts.logs()).open(...given));
      return log === null ? null : follow(parts, log);
    },
    find: async (...given) => await told((await parts.logs()).find(...given)),
    list: async (...given) => await told((await parts.logs()).list(...given)),
  };
}

function follow(parts: FarLogParts, log: ExecLog): ExecLog {
  let hasEnded = false;
  return {
    read: () => log.read().catch((error) => explain(parts, error)),
    async grown(released) {
      if (hasEnded) {
        await delay(pauseMs, undefined, { signal: released }).catch(() => undefined);
        await parts.check();
      }
      const done = new AbortController();
      const ended = parts.untilEnd(AbortSignal.any([done.signal, released])).then(() => {
        hasEnded ||= !done.signal.aborted && !released.aborted;
        return false;
      });
      try {
        return await Promise.race([log.grown(released), ended]);
      } catch (error) {
        return await explain(parts, error);
      } finally {
        done.abort();
      }
    },
    close: () => log.close(),
  };
}

/** A link that was closed says nothing of its sandbox. */
async function explain({ check }: FarLogParts, error: unknown): Promise<never> {
  if (hasCode(error, "aborted")) await check();
  throw error;
}
