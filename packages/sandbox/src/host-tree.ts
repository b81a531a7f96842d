import { constants, type Stats } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { TreeEntry } from "./provider.ts";

export interface WalkOptions {
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
  /** Sockets, pipes and devices have no content to copy. */
  readonly onLeftOut: (path: string, reason: string) => void;
}

/** Yields a directory tree of this machine, parents first. Follows no links. */
export async function* walkTree(root: string, options: WalkOptions, below = ""): AsyncGenerator<TreeEntry> {
  for (const name of (await readdir(join(root, below))).sort()) {
    options.signal.throwIfAborted();
    const path = below === "" ? name : `${below}/${name}`;
    const stats = await lstat(join(root, path));
    const entry = await fileOrLink(root, path, stats, options);
    if (entry !== undefined) yield entry;
    else if (stats.isDirectory()) {
      yield { type: "directory", path, mode: stats.mode & 0o777 };
      yield* walkTree(root, options, path);
    } else options.onLeftOut(path, kindOf(stats));
  }
}

/** Undefined for anything but a file or a symbolic link. */
export async function fileOrLink(
  root: string,
  path: string,
  stats: Stats,
  options: WalkOptions,
): Promise<TreeEntry | undefined> {
  const local = join(root, path);
  if (stats.isSymbolicLink()) return { type: "symlink", path, target: await readlink(local) };
  if (!stats.isFile()) return undefined;
  return { type: "file", path, mode: stats.mode & 0o777, content: readLocal(local, options, constants.O_NOFOLLOW) };
}

export async function* readLocal(
  path: string,
  options: Pick<WalkOptions, "signal" | "onBytes">,
  flags = 0,
): AsyncGenerator<Uint8Array> {
  await using file = await open(path, constants.O_RDONLY | flags);
  // A fresh buffer per chunk: the consumer may keep it.
  for (;;) {
    options.signal.throwIfAborted();
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(256 * 1024), 0, undefined, null);
    if (bytesRead === 0) return;
    options.onBytes(bytesRead);
    yield buffer.subarray(0, bytesRead);
  }
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return "a pipe";
  if (stats.isSocket()) return "a socket";
  return "a device";
}
