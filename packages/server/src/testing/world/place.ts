import { chmodSync, existsSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
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
    held.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  }
  // As root, sandboxes run as another user, who must be able to pass through.
  chmodSync(directory, 0o711);
  return { directory, clock, names };
}

const small = ["ticks", "steps", "planning", "http"];
const large = ["registry", "sandboxes", "repository"];

/** What is small is in memory where that can be: no disk is waited for. Nothing runs from there. */
function parentOf(names: Place["names"]): string {
  const isAsked = (name: string) => names.has(name);
  return small.some(isAsked) && !large.some(isAsked) && existsSync("/dev/shm") ? "/dev/shm" : "/var/tmp";
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
