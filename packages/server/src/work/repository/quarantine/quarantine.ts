import { readFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "../git.ts";
import { isAlive, parseStat } from "./process.ts";

/** A directory for objects that are not in the build's repository yet. Disposing it removes what was not kept. */
export interface Quarantine extends AsyncDisposable {
  readonly directory: string;
  /** Reads the repository's objects and writes new ones here. */
  readonly git: Git;
  /** Moves its packs into the repository. */
  keep(): Promise<void>;
}

let made = 0;

export async function openQuarantine(below: string, git: Git): Promise<Quarantine> {
  const directory = join(below, `${ownName()}-${++made}`);
  await mkdir(join(directory, "pack"), { recursive: true, mode: 0o700 });
  const objects = join(git.directory, "objects");
  return {
    directory,
    git: git.with({ GIT_OBJECT_DIRECTORY: directory, GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(objects) }),
    async keep() {
      const files = await readdir(join(directory, "pack"));
      // Git finds packs by their indexes, so move those last.
      const inOrder = files.toSorted((a, b) => Number(a.endsWith(".idx")) - Number(b.endsWith(".idx")));
      for (const file of inOrder) await rename(join(directory, "pack", file), join(objects, "pack", file));
    },
    [Symbol.asyncDispose]: () => removeDirectory(directory),
  };
}

/** Removes quarantines of ended processes. */
export async function sweepQuarantine(below: string): Promise<void> {
  for (const name of await readdir(below)) {
    const [, pid, startTime = ""] = /^([0-9]+)-([0-9]+)-[0-9]+$/.exec(name) ?? [];
    if (!isAlive({ pid: Number(pid), startTime })) await removeDirectory(join(below, name));
  }
}

/** Retries, because a git that lost its reader may still write for a moment. */
async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

function ownName(): string {
  const own = parseStat(readFileSync("/proc/self/stat", "latin1"));
  return `${own?.pid}-${own?.startTime}`;
}

/** Quotes a directory for a list that git splits at colons. */
export function quoted(directory: string): string {
  return `"${directory.replace(/["\\]/g, "\\$&")}"`;
}
