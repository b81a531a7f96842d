import type { BuildId } from "@slipway/contract";
import type { Drive, DriveParts } from "./drive.ts";
import { createTurns, retryMs } from "./turns.ts";

/** Drives builds by timers of this process. Only this process can ring; its coordinator finds reports of others in a sweep. */
export async function openTimers(parts: DriveParts): Promise<Drive> {
  const turns = createTurns(parts);
  const bells = new Map<BuildId, Bell>();
  const run = async (build: BuildId, generation: number, bell: Bell): Promise<void> => {
    for (let failures = 0; bells.get(build) === bell; ) {
      bell.clear();
      const turn = await turns.run(build, { holder: parts.name, generation }, build).catch(() => undefined);
      if (turn?.over) break;
      failures = turn === undefined ? failures + 1 : 0;
      if (bells.get(build) === bell) await bell.wait(turn?.waitMs ?? retryAfter(failures));
    }
    if (bells.get(build) === bell) bells.delete(build);
  };
  const end = (build: BuildId) => {
    const bell = bells.get(build);
    bells.delete(build);
    bell?.ring();
  };
  return {
    async drive(build, generation) {
      end(build);
      const bell = createBell();
      bells.set(build, bell);
      void run(build, generation, bell);
    },
    async ring(bell) {
      bells.get(bell as BuildId)?.ring();
    },
    async [Symbol.asyncDispose]() {
      for (const build of bells.keys()) end(build);
      await turns.drain();
    },
  };
}

function retryAfter(failures: number): number {
  return Math.min(retryMs.first * 2 ** (failures - 1), retryMs.longest);
}

type Bell = ReturnType<typeof createBell>;

/** `wait` returns at once if the bell has rung since `clear`. */
function createBell() {
  let hasRung = false;
  let wake = () => {};
  return {
    clear(): void {
      hasRung = false;
    },
    ring(): void {
      hasRung = true;
      wake();
    },
    async wait(ms: number): Promise<void> {
      if (hasRung) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      const timer = setTimeout(resolve, Math.min(ms, longestTimerMs));
      await promise;
      clearTimeout(timer);
    },
  };
}

/** A longer timer would fire at once. */
const longestTimerMs = 2 ** 31 - 1;
