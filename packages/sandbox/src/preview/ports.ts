import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The ports that previews have used, one file each. A browser may still hold a page, a cookie or a service worker of a
 * former preview, so no other preview gets its port, in any process.
 */
export interface UsedPorts {
  /** True when no preview has used it. */
  claim(port: number): Promise<boolean>;
}

export function openUsedPorts(directory: string): UsedPorts {
  return {
    async claim(port) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      try {
        await writeFile(join(directory, String(port)), "", { flag: "wx", mode: 0o600 });
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
        throw error;
      }
    },
  };
}
