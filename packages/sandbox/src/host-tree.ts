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

/** A tree of this machine, parents before children. Links are taken as links. */
export async function* walkTree(root: string, options: WalkOptions, below = ""): AsyncGenerator<TreeEntry> {
  for (const name of (await readdir(join(root, below))).sort()) {
    options.signal.throwIfAborted();
    const path = below === "" ? name : `${below}/${name}`;
    const stats = await lstat(join(root, path));
    const mode = stats.mode & 0o777;
    if (stats.isDirectory()) {
      yield { type: "directory", path, mode };
      yield* walkTree(root, options, path);
    } else if (stats.isFile()) {
      yield { type: "file", path, mode, content: readLocal(join(root, path), options, constants.O_NOFOLLOW) };
    } else if (stats.isSymbolicLink()) {
      yield { type: "symlink", path, target: await readlink(join(root, path)) };
    } else {
      options.onLeftOut(path, kindOf(stats));
    }
  }
}

export async function* readLocal(
  path: string,
  options: Pick<WalkOptions, "signal" | "onBytes">,
  flags = 0,
): AsyncGenerator<Uint8Array> {
  await using file = await open(path, constants.O_RDONLY | flags);
  // A fresh buffer per chunk: whoever takes it may keep it.
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
