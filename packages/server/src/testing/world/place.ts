import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface PlaceOptions {
  /** The real one, unless it is given. */
  readonly clock?: { now(): number };
  /** One of the world's own, which goes with it, unless it is given. */
  readonly directory?: string;
}

export interface Place {
  readonly directory: string;
  readonly clock: { now(): number };
  /** The names of all that the world has. */
  readonly names: ReadonlySet<string>;
}

export function openPlace({ clock = Date, ...given }: PlaceOptions, names: Place["names"], held: AsyncDisposableStack) {
  const directory = given.directory ?? mkdtempSync(join(parentOf(names), "slipway-world-"));
  if (given.directory === undefined) {
    held.defer(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  }
  // As root, sandboxes run as another user, who must be able to pass through.
  chmodSync(directory, 0o711);
  return { directory, clock, names };
}

const onDisk = ["registry", "sandboxes", "repository", "server"];

/** In memory where that can be: no disk is waited for. What may be large is on a disk. */
function parentOf(names: Place["names"]): string {
  if (onDisk.some((name) => names.has(name))) return "/var/tmp";
  return existsSync("/dev/shm") && !names.has("simulation") ? "/dev/shm" : tmpdir();
}

/** A clock that stands still until it is told to pass. */
export function stillClock(nowMs = 1_000_000) {
  return {
    now: () => nowMs,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}
