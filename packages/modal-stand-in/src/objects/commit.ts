import { posix } from "node:path";
import { run, type TreeEntry } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";
import type { StoredTree } from "./stored-tree.ts";

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
  { mountPath, root, tree }: { mountPath: string; root: string; tree: StoredTree },
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
