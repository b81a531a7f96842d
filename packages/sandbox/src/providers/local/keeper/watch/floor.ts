import type { Lifecycle } from "../../../../keeper/boxes/lifecycle.ts";
import { type Clock, repeat } from "../../../../keeper/clock.ts";
import type { Box, Boxes } from "../boxes/boxes.ts";
import type { Hold } from "../boxes/hold.ts";
import { canWrite, decideStop } from "../decide.ts";
import type { Space } from "./space.ts";

export interface FloorParts {
  readonly boxes: Pick<Boxes, "all">;
  readonly hold: Pick<Hold, "isFirm">;
  readonly lifecycle: Pick<Lifecycle, "end">;
  readonly space: Space;
  readonly clock: Clock;
  /** What the sandbox's processes have written since they started. */
  writtenBytes(box: Box): Promise<number>;
  /** What its files take, unlinked ones included. Expensive. */
  takenBytes(box: Box): Promise<number>;
  onError(box: Box, error: unknown): void;
}

/** More than any disk writes per second. Sets how soon to look again: the nearer the floor, the sooner. */
const fastestBytesPerSecond = 4 * 1024 ** 3;
const intervalMs = { least: 200, most: 1000 };
/** How far free space has to fall before sandboxes are measured again. */
const worthMeasuringBytes = 4 * 1024 * 1024;
/** After that, the next one is stopped too. */
const endingMs = 5000;

/**
 * Keeps part of the machine's disk free even where the sandboxes' own limits do not hold: stops the one that writes
 * most, then the next, until there is room again. Leaves alone those that write nothing.
 */
export function startFloorWatch(parts: FloorParts): Disposable {
  const { boxes, clock, hold, lifecycle, space, onError } = parts;
  const { minFreeBytes } = space;
  /** What each had written while there was still room. */
  let before = new Map<Box, number>();
  const measured = { freeBytes: Number.POSITIVE_INFINITY, taken: new Map<Box, number>() };
  const ending = new Set<Box>();

  const end = (box: Box) => {
    ending.add(box);
    return lifecycle
      .end(box.id, "host_out_of_disk")
      .catch((error) => onError(box, error))
      .finally(() => ending.delete(box));
  };
  const settledOrLate = async (work: Promise<void>) => {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const giveUp = clock.after(endingMs, resolve);
    await Promise.race([work, late]);
    giveUp();
  };
  const ask = (able: readonly Box[], bytesOf: (box: Box) => Promise<number>) =>
    Promise.all(
      able.map(async (box) => {
        const bytes = await bytesOf(box).catch((error) => {
          onError(box, error);
          return 0;
        });
        return [box, bytes] as const;
      }),
    );
  /** No process accounts for what one wrote that has ended without being waited for: only the files show it. */
  const growing = async (able: readonly Box[], free: number) => {
    if (free > measured.freeBytes - worthMeasuringBytes) return null;
    measured.freeBytes = free;
    const taken = await ask(able, parts.takenBytes);
    for (const [box, bytes] of taken) if (!measured.taken.has(box)) measured.taken.set(box, bytes);
    return decideStop(grownSince(measured.taken, taken), free, minFreeBytes);
  };
  const look = async () => {
    const free = space.freeBytes();
    if (free >= minFreeBytes) {
      measured.freeBytes = Number.POSITIVE_INFINITY;
      measured.taken.clear();
    }
    // Far from the floor it does not matter who writes.
    if (free >= 2 * minFreeBytes) return before.clear();
    const able = [...boxes.all()].filter((box) => canWrite(box.record.state, hold) && !ending.has(box));
    const written = await ask(able, parts.writtenBytes);
    if (free >= minFreeBytes) {
      before = new Map(written);
      return;
    }
    const writer = decideStop(grownSince(before, written), free, minFreeBytes) ?? (await growing(able, free));
    if (writer !== null) await settledOrLate(end(writer.box));
  };
  const pauseMs = () => {
    const room = (1000 * (space.freeBytes() - minFreeBytes)) / fastestBytesPerSecond;
    return Math.min(Math.max(room, intervalMs.least), intervalMs.most);
  };
  return repeat(clock, pauseMs, look);
}

function grownSince(before: Map<Box, number>, now: readonly (readonly [Box, number])[]) {
  return now.map(([box, bytes]) => {
    // Less than before when processes ended that nobody waited for.
    const earlier = Math.min(before.get(box) ?? 0, bytes);
    before.set(box, earlier);
    return { box, grownBytes: bytes - earlier };
  });
}
