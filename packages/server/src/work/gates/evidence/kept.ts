import { unlessAborted } from "../../workspaces/line.ts";
import type { Evidence } from "./evidence.ts";

/** Evidence by what it is of, so that it is made once. A server that starts anew makes it again. */
export interface KeptEvidence {
  /** What is kept, or what `make` makes. Who waits for another's making that fails makes it itself. */
  of(key: string, make: () => Promise<Evidence>, signal: AbortSignal): Promise<Evidence>;
  keep(key: string, evidence: Evidence): void;
}

const maxKept = 20;

export function createKeptEvidence(): KeptEvidence {
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
    async of(key, make, signal) {
      for (;;) {
        const made = kept.get(key);
        if (made === undefined) return await put(key, make());
        const found = await unlessAborted(made, signal).catch(() => undefined);
        signal.throwIfAborted();
        if (found !== undefined) return found;
      }
    },
    keep: (key, evidence) => void put(key, Promise.resolve(evidence)),
  };
}
