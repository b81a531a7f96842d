import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { run, type TreeEntry } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";

/**
 * A volume's committed content, by paths. The files' content lies in blobs with names of their own: no name or link
 * that a sandbox has made becomes one on this machine.
 */
export class VolumeTree {
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

/** What a sandbox's copy looked like, by path: a change shows in the fingerprint. */
export type Seen = ReadonlyMap<string, string>;

export async function seenIn(box: Box, mountPath: string): Promise<Seen> {
  const format = ["%P", "%y %m %s %T@ %l", ""].join("\\0");
  const { stdout } = await run(box, ["find", mountPath, "-mindepth", "1", "-printf", format]);
  const fields = stdout.split("\0");
  const pairs = Array.from({ length: Math.floor(fields.length / 2) }, (_, number) => number * 2);
  return new Map(pairs.map((at) => [fields[at] ?? "", fields[at + 1] ?? ""]));
}

/** Takes over what the sandbox has changed since it was last seen. The last writer of a file wins. */
export async function commitTree(
  box: Box,
  { mountPath, root, tree }: { mountPath: string; root: string; tree: VolumeTree },
  before: Seen,
): Promise<Seen> {
  const after = await seenIn(box, mountPath);
  const within = (path: string) => posix.join(root, path);
  for (const path of before.keys()) if (!after.has(path)) await tree.remove(within(path));
  const changed = new Set([...after.keys()].filter((path) => after.get(path) !== before.get(path)));
  if (changed.size === 0) return after;
  for await (const entry of box.files.download(mountPath)) {
    if (changed.has(entry.path)) await tree.put(within(entry.path), entry);
    else if (entry.type === "file") await drain(entry.content);
  }
  return after;
}

async function drain(content: Extract<TreeEntry, { type: "file" }>["content"]): Promise<void> {
  if (typeof content === "string" || content instanceof Uint8Array) return;
  for await (const piece of content) void piece;
}
