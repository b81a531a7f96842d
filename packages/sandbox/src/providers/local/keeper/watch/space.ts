import { statfsSync } from "node:fs";
import { SlipwayError } from "@slipway/contract";

/** The file system that holds the state directory. */
export interface Space {
  /** What sandboxes leave free of it, whatever their own limits are. */
  readonly minFreeBytes: number;
  usedBytes(): number;
  freeBytes(): number;
  /** Fails with `out_of_disk` when less than that is free: nothing that takes room begins then. */
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
        `${path} has ${left} MB left on its disk, and sandboxes leave ${floor} MB of it free; make room, or set SLIPWAY_MIN_FREE_MB`,
      );
    },
  };
}
