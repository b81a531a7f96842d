import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import type { TreeEntry } from "@slipway/sandbox";

/**
 * A tree of files that came from a sandbox, by paths. The files' content lies in blobs with names of their own: no name or link
 * that a sandbox has made becomes one on this machine.
 */
export class StoredTree {
  readonly #entries = new Map<string, Stored>();
  readonly #directory: string;
  #blobs = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The entries below a path, parents first, with paths relative to it. */
  *below(root: string): Generator<TreeEntry> {
    const prefix = root === "" ? "" : `${root}/`;
    for (const path of [...this.#entries.keys()].sort()) {
      const stored = this.#entries.get(path);
      if (stored === undefined || !path.startsWith(prefix)) continue;
      const entry = { ...stored, path: path.slice(prefix.length) };
      yield entry.type === "file" ? { ...entry, content: createReadStream(entry.blob) } : entry;
    }
  }

  async put(path: string, entry: TreeEntry): Promise<void> {
    for (let parent = posix.dirname(path); parent !== "."; parent = posix.dirname(parent)) {
      if (this.#entries.get(parent)?.type !== "directory")
        this.#entries.set(parent, { type: "directory", mode: 0o755 });
    }
    const before = this.#entries.get(path);
    const { path: _, ...rest } = entry;
    if (rest.type === "file") {
      await mkdir(this.#directory, { recursive: true });
      const blob = join(this.#directory, String(++this.#blobs));
      const { content } = rest;
      await pipeline(
        typeof content === "string" || content instanceof Uint8Array ? [content] : content,
        createWriteStream(blob),
      );
      this.#entries.set(path, { type: "file", mode: rest.mode, blob });
    } else this.#entries.set(path, rest);
    if (before?.type === "file") await rm(before.blob, { force: true });
  }

  async remove(path: string): Promise<void> {
    for (const [name, entry] of this.#entries) {
      if (name !== path && !name.startsWith(`${path}/`)) continue;
      this.#entries.delete(name);
      if (entry.type === "file") await rm(entry.blob, { force: true });
    }
  }

  async clear(): Promise<void> {
    this.#entries.clear();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

type Stored =
  | { readonly type: "file"; readonly mode: number; readonly blob: string }
  | { readonly type: "directory"; readonly mode: number }
  | { readonly type: "symlink"; readonly target: string };
