import { constants, readdirSync, renameSync, writeFileSync } from "node:fs";
import { access } from "node:fs/promises";

/** Sorted; none when the directory does not exist. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Readers see the old content or the new one. The caller is the file's only writer. Not synced to disk. */
export function replaceFile(path: string, content: string | Uint8Array, mode: number): void {
  const draft = `${path}.new`;
  writeFileSync(draft, content, { mode });
  renameSync(draft, path);
}

/** Whether a path exists and, with a mode, can be used so. */
export async function canAccess(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
