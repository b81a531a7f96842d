import { type BuildId, SlipwayError } from "@slipway/contract";
import type { LeaseHolder } from "@slipway/engine";
import type { DriveParts, DriveTurn } from "./drive.ts";

const drainMs = 5_000;
/** Another server drives the build, or the build is gone: nothing is left to do here. */
const endings: readonly string[] = ["lease_lost", "build_not_found"];

/** How long a drive waits before it retries a failed turn, at first and at most. */
export const retryMs = { first: 50, longest: 5_000 };

/** Tracks running turns, so that an orderly end waits for them. */
export function createTurns({ takeTurn, warn }: DriveParts) {
  const running = new Set<Promise<unknown>>();
  let closing = false;
  return {
    async run(build: BuildId, by: LeaseHolder, bell: string): Promise<DriveTurn> {
      if (closing) throw new SlipwayError("aborted", "this server is stopping");
      const turn = takeTurn(build, by, bell);
      running.add(turn);
      try {
        return await turn;
      } catch (error) {
        if (error instanceof SlipwayError && endings.includes(error.code)) return { over: true };
        warn(`a turn of ${build} failed and will be retried: ${error instanceof Error ? error.message : error}`);
        throw error;
      } finally {
        running.delete(turn);
      }
    },
    async drain(): Promise<void> {
      closing = true;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, drainMs);
      await Promise.race([promise, Promise.allSettled(running)]);
      clearTimeout(timer);
    },
  };
}
