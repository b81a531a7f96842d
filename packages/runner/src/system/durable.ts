import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { createSaver } from "@slipway/contract";

export interface DurableFile {
  /** Replaces the content. Answers when this content, or a later one, is on disk; a crash leaves the old or the new one. */
  write(content: string): Promise<void>;
}

export function durableFile(path: string): DurableFile {
  return { write: createSaver((content: string) => replaceFile(path, content)) };
}

async function replaceFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.new`;
  {
    await using file = await open(temporary, "w", 0o600);
    await file.writeFile(content);
    await file.sync();
  }
  await rename(temporary, path);
  await using directory = await open(dirname(path));
  await directory.sync();
}
