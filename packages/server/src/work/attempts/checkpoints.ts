import { hasCode, type SandboxId, type SnapshotId } from "@slipway/contract";
import type { Sandbox, SandboxProvider } from "@slipway/sandbox";

export type Checkpointed = (made: {
  readonly sandbox: SandboxId;
  readonly snapshot: SnapshotId;
  readonly phase: string;
}) => Promise<void>;

export interface CheckpointsOptions {
  readonly sandbox: Sandbox;
  /** Names the snapshots. */
  readonly name: string;
  readonly everyMs: number;
  /** Called with each new snapshot. */
  made(snapshot: SnapshotId, phase: string): Promise<void>;
  warn(error: Error): void;
}

/** Takes snapshots of a working sandbox, on request and periodically. */
export interface Checkpoints extends AsyncDisposable {
  /** Requests a checkpoint after the current one; requests at the same time count as one. */
  wish(phase: string): void;
  /** The run has sent an event. */
  heard(): void;
}

/** A snapshot pauses the sandbox and delays its events, so it waits until the run is quiet. */
const quietMs = 250;
const mostQuietMs = 2000;

export function createCheckpoints({ sandbox, name, everyMs, made, warn }: CheckpointsOptions): Checkpoints {
  let phase = "initialise";
  let wished = false;
  let heardAtMs = Number.NEGATIVE_INFINITY;
  let working: Promise<void> | undefined;
  const over = new AbortController();
  const quiet = async () => {
    const latestMs = performance.now() + mostQuietMs;
    while (!over.signal.aborted) {
      const waitMs = Math.min(heardAtMs + quietMs, latestMs) - performance.now();
      if (waitMs <= 0) return;
      await sleep(waitMs, over.signal);
    }
  };
  const work = async () => {
    while (wished) {
      await quiet();
      if (over.signal.aborted) break;
      wished = false;
      const at = phase;
      try {
        const { id } = await sandbox.snapshot({ name });
        await made(id, at);
      } catch (error) {
        // A missing checkpoint only means more work to repeat. Others notice an ended sandbox.
        warn(error as Error);
      }
    }
    working = undefined;
  };
  const wish = () => {
    wished = true;
    working ??= work();
  };
  const timer = setInterval(wish, everyMs);
  timer.unref();
  return {
    wish(next) {
      phase = next;
      wish();
    },
    heard() {
      heardAtMs = performance.now();
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      clearInterval(timer);
      await working;
    },
  };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });
}

/** Removes snapshots. Returns those that are still in use by a sandbox. */
export async function removeSnapshots(
  { snapshots }: Pick<SandboxProvider, "snapshots">,
  ids: readonly SnapshotId[],
): Promise<SnapshotId[]> {
  const inUse: SnapshotId[] = [];
  for (const id of ids) {
    try {
      await snapshots.delete(id);
    } catch (error) {
      if (hasCode(error, "snapshot_in_use")) inUse.push(id);
      else if (!hasCode(error, "snapshot_not_found")) throw error;
    }
  }
  return inUse;
}
