import { unlessAborted } from "../../workspaces/line.ts";
import type { Evidence } from "./evidence.ts";

export type KeptEvidence = ReturnType<typeof createKeptEvidence>;

const maxKept = 20;

/** Keeps evidence in memory by key, so that it is made once per process. */
export function createKeptEvidence() {
  const kept = new Map<string, Promise<Evidence>>();
  const put = (key: string, evidence: Promise<Evidence>) => {
    kept.delete(key);
    kept.set(key, evidence);
    evidence.catch(() => {
      if (kept.get(key) === evidence) kept.delete(key);
    });
    for (const old of kept.keys().take(Math.max(0, kept.size - maxKept))) kept.delete(old);
    return evidence;
  };
  return {
    /** Returns the kept evidence or makes it. If another caller's `make` fails, a waiting caller makes it itself. */
    async of(key: string, make: () => Promise<Evidence>, signal: AbortSignal): Promise<Evidence> {
      for (;;) {
        const made = kept.get(key);
        if (made === undefined) return await put(key, make());
        const found = await unlessAborted(made, signal).catch(() => undefined);
        signal.throwIfAborted();
        if (found !== undefined) return found;
      }
    },
    keep: (key: string, evidence: Evidence) => void put(key, Promise.resolve(evidence)),
  };
}
