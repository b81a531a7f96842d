import type { CallOptions } from "@slipway/sandbox";
import type { ObjectStorage } from "../objects/storage.ts";
import { type FileEntry, parentsOf } from "./manifest.ts";
import { findUnchanged, type ListedEntry, listTree, type SandboxTree } from "./sandbox-tree.ts";
import { type SourceEntry, type TreeSource, uploadEntries } from "./tree-source.ts";

export interface Hydrated {
  readonly version: string | null;
  readonly entries: number;
  readonly bytes: number;
}

/** Puts a tree into a directory of a sandbox that has none of it yet. */
export async function hydrate(
  storage: ObjectStorage,
  source: TreeSource,
  sandbox: SandboxTree,
  directory: string,
  options: CallOptions,
): Promise<Hydrated> {
  await sandbox.files.mkdir(directory, options);
  await sandbox.files.upload(directory, uploadEntries(storage, source.entries, options), options);
  return summary(source, source.entries);
}

/** Makes a directory of a sandbox equal to a tree: what differs is replaced, what is more is removed. */
export async function restoreTree(
  storage: ObjectStorage,
  source: TreeSource,
  sandbox: SandboxTree,
  directory: string,
  options: CallOptions,
): Promise<Hydrated & { readonly removed: number }> {
  await sandbox.files.mkdir(directory, options);
  const { entries: listed } = await listTree(sandbox, directory, options);
  const unchanged = await findUnchanged(sandbox, directory, listed, hashedFiles(source), options);
  const there = new Map(listed.map((entry) => [entry.path, entry]));
  const wanted = new Map(source.entries.map((entry) => [entry.path, entry]));
  const parents = new Set(source.entries.flatMap(({ path }) => parentsOf(path)));
  const isInTheWay = ({ path, type }: ListedEntry) => {
    const entry = wanted.get(path);
    // Parents of plain objects are no entries of their own.
    return entry === undefined ? type !== "directory" || !parents.has(path) : entry.type !== type;
  };
  const removed = topMost(listed.filter(isInTheWay));
  for (const { path } of removed) {
    await sandbox.files.remove(`${directory}/${path}`, { ...options, recursive: true });
  }
  const missing = source.entries.filter((entry) => !isThere(entry, there.get(entry.path), unchanged));
  await sandbox.files.upload(directory, uploadEntries(storage, missing, options), options);
  return { ...summary(source, missing), removed: removed.length };
}

function hashedFiles({ entries }: TreeSource): ReadonlyMap<string, FileEntry> {
  const files = new Map<string, FileEntry>();
  for (const entry of entries) {
    if (entry.type !== "file" || entry.sha256 === undefined) continue;
    const { type, path, mode, size, sha256 } = entry;
    files.set(path, { type, path, mode, size, sha256 });
  }
  return files;
}

/** Without what goes with its parent. */
function topMost(entries: readonly ListedEntry[]): ListedEntry[] {
  const paths = new Set(entries.map(({ path }) => path));
  return entries.filter(({ path }) => !parentsOf(path).some((parent) => paths.has(parent)));
}

function isThere(
  entry: SourceEntry,
  other: ListedEntry | undefined,
  unchanged: ReadonlyMap<string, FileEntry>,
): boolean {
  if (other === undefined || other.type !== entry.type) return false;
  if (other.type === "symlink") return entry.type === "symlink" && other.target === entry.target;
  if (entry.type === "symlink" || other.mode !== entry.mode) return false;
  return entry.type === "directory" || unchanged.has(entry.path);
}

function summary({ version }: TreeSource, entries: readonly SourceEntry[]): Hydrated {
  const bytes = entries.reduce((sum, entry) => sum + (entry.type === "file" ? entry.size : 0), 0);
  return { version, entries: entries.length, bytes };
}
