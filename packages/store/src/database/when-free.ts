import { setTimeout as sleep } from "node:timers/promises";
import { isBusy } from "./failures.ts";

/** How long a statement waits for another one's transaction before it fails as busy. */
const busyTimeoutMs = 5000;
const maxPauseMs = 25;
/** Tries before giving up, however much time has passed: a stopped process must not fail at once. */
const leastTries = 200;

/**
 * Tries again while another connection has the lock. SQLite's own busy timeout would block the whole process, together
 * with a transaction of this process that has the lock.
 */
export async function whenFree<T>(attempt: () => T): Promise<T> {
  const end = performance.now() + busyTimeoutMs;
  for (let tries = 1, pauseMs = 1; ; tries++, pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || (performance.now() > end && tries > leastTries)) throw error;
    }
    await sleep(pauseMs);
  }
}
