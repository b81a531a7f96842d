import { statfsSync } from "node:fs";
import { SlipwayError } from "@slipway/contract";

/** The file system that holds the state directory. */
export interface Space {
  /** What sandboxes must leave free, whatever their own limits. */
  readonly minFreeBytes: number;
  usedBytes(): number;
  freeBytes(): number;
  /** Fails with `out_of_disk` when less is free. Call before anything that takes space. */
  require(): void;
}

const mebibyte = 1024 * 1024;

export function openSpace(path: string, minFreeBytes: number, statfs: typeof statfsSync = statfsSync): Space {
  const freeBytes = () => {
    const { bavail, bsize } = statfs(path);
    return bavail * bsize;
  };
  return {
    minFreeBytes,
    freeBytes,
    usedBytes() {
      const { blocks, bfree, bsize } = statfs(path);
      return (blocks - bfree) * bsize;
    },
    require() {
      const free = freeBytes();
      if (free >= minFreeBytes) return;
      const [left, floor] = [free, minFreeBytes].map((bytes) => Math.floor(bytes / mebibyte));
      throw new SlipwayError(
        "out_of_disk",
        `${path} has ${left} MB left on its disk, and sandboxes must leave ${floor} MB free. Make room, or set SLIPWAY_MIN_FREE_MB.`,
      );
    },
  };
}
