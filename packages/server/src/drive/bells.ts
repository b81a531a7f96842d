import type { BuildId } from "@slipway/contract";

export interface Bells {
  ring(build: BuildId): void;
}

/** Rings for a build one ring at a time, and once more for all rings that came in meanwhile. */
export function createBells(ring: (build: BuildId) => Promise<void>, warn: (message: string) => void): Bells {
  const ringing = new Map<BuildId, "once" | "again">();
  const start = async (build: BuildId) => {
    for (;;) {
      ringing.set(build, "once");
      await ring(build).catch((error: Error) => warn(`Cannot ring for ${build}: ${error.message}`));
      if (ringing.get(build) === "again") continue;
      ringing.delete(build);
      return;
    }
  };
  return {
    ring(build) {
      if (ringing.has(build)) ringing.set(build, "again");
      else void start(build);
    },
  };
}
