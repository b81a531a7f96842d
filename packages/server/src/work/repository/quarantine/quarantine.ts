import { readFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "../git.ts";
import { isAlive, parseStat } from "./process.ts";

/** A place for objects that the build's repository does not have yet. It goes with all that was not kept. */
export interface Quarantine extends AsyncDisposable {
  readonly directory: string;
  /** Sees the repository's objects, and writes its own here. */
  readonly git: Git;
  /** Moves what is here into the repository: packs only. */
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
      // Git looks for an index, and then for what it is of.
      const inOrder = files.toSorted((a, b) => Number(a.endsWith(".idx")) - Number(b.endsWith(".idx")));
      for (const file of inOrder) await rename(join(directory, "pack", file), join(objects, "pack", file));
    },
    [Symbol.asyncDispose]: () => removeDirectory(directory),
  };
}

/** Removes what processes have left that ended without doing so. */
export async function sweepQuarantine(below: string): Promise<void> {
  for (const name of await readdir(below)) {
    const [, pid, startTime = ""] = /^([0-9]+)-([0-9]+)-[0-9]+$/.exec(name) ?? [];
    if (!isAlive({ pid: Number(pid), startTime })) await removeDirectory(join(below, name));
  }
}

/** A git that lost its reader may still write for a moment. */
async function removeDirectory(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

function ownName(): string {
  const own = parseStat(readFileSync("/proc/self/stat", "latin1"));
  return `${own?.pid}-${own?.startTime}`;
}

/** In a list of directories git splits at colons, unless one is quoted. */
export function quoted(directory: string): string {
  return `"${directory.replace(/["\\]/g, "\\$&")}"`;
}
