import { createHash } from "node:crypto";
import { SlipwayError } from "@slipway/contract";
import type { TreeEntry } from "@slipway/sandbox";
import { collect, listAll, type ObjectStorage, type StorageCall } from "../objects/storage.ts";
import { ahead } from "./bounded.ts";
import { checkTree, type Entry, pathMistake } from "./manifest.ts";
import { fileKey, isOfVersions, listVersions, readManifest } from "./versions.ts";

export type SourceEntry =
  | Exclude<Entry, { type: "file" }>
  | {
      readonly type: "file";
      readonly path: string;
      readonly mode: number;
      readonly size: number;
      readonly key: string;
      /** Undefined for a plain object, for whose content nobody vouches. */
      readonly sha256: string | undefined;
    };
export type SourceFile = Extract<SourceEntry, { type: "file" }>;

/** A tree in the storage. */
export interface TreeSource {
  /** Null for a place without versions: the plain objects that others put there. */
  readonly version: string | null;
  /** Parents first. */
  readonly entries: readonly SourceEntry[];
}

/** The version, or by default the newest one; at a place that has none, the plain objects. */
export async function findSource(
  storage: ObjectStorage,
  version: string | undefined,
  options: StorageCall,
): Promise<TreeSource> {
  const wanted = version ?? (await listVersions(storage, options))[0]?.version;
  if (wanted === undefined) return { version: null, entries: await plainObjects(storage, options) };
  const { entries } = await readManifest(storage, wanted, options);
  const withKey = (entry: Entry): SourceEntry =>
    entry.type === "file" ? { ...entry, key: fileKey(wanted, entry.path) } : entry;
  return { version: wanted, entries: entries.map(withKey) };
}

async function plainObjects(storage: ObjectStorage, options: StorageCall): Promise<SourceEntry[]> {
  const entries: SourceEntry[] = [];
  for await (const { key, size } of listAll(storage, "", options)) {
    if (isOfVersions(key)) continue;
    // Consoles of S3 make objects for directories.
    const path = key.replace(/\/$/, "");
    const mistake = pathMistake(path);
    if (mistake !== undefined) throw notATree(`${JSON.stringify(key)}: ${mistake}`);
    if (key.endsWith("/")) entries.push({ type: "directory", path, mode: 0o755 });
    else entries.push({ type: "file", path, mode: 0o644, size, key, sha256: undefined });
  }
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  checkTree(entries as readonly Entry[], notATree);
  return entries;
}

function notATree(mistake: string): SlipwayError {
  return new SlipwayError("path_outside", `The objects of this place are not a tree of files: ${mistake}.`);
}

const wholeFileBytes = 1024 * 1024;
const readsAhead = 16;

/** The tree, with its contents read ahead. */
export function treeEntries(
  storage: ObjectStorage,
  entries: readonly SourceEntry[],
  options: StorageCall,
): AsyncGenerator<TreeEntry> {
  return ahead(entries, readsAhead, async (entry) => {
    if (entry.type !== "file") return entry;
    const { type, path, mode, size } = entry;
    const content = checked(storage, entry, options);
    return { type, path, mode, content: size <= wholeFileBytes ? await collect(content) : content };
  });
}

/**
 * The tree for an upload, which gives a directory its mode before its files: one whose owner must not write to it comes
 * twice, in the end as it is.
 */
export async function* uploadEntries(
  storage: ObjectStorage,
  entries: readonly SourceEntry[],
  options: StorageCall,
): AsyncGenerator<TreeEntry> {
  const closed = entries.flatMap((entry) =>
    entry.type === "directory" && (entry.mode & 0o700) !== 0o700 ? [entry] : [],
  );
  const isClosed = new Set<SourceEntry>(closed);
  const open = (entry: SourceEntry) =>
    entry.type === "directory" && isClosed.has(entry) ? { ...entry, mode: entry.mode | 0o700 } : entry;
  yield* treeEntries(storage, entries.map(open), options);
  yield* closed.reverse();
}

/** What the storage answers must be what was written to it. */
async function* checked(
  storage: ObjectStorage,
  { key, path, size, sha256 }: SourceFile,
  options: StorageCall,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let left = size;
  for await (const part of storage.get(key, options)) {
    left -= part.length;
    if (left < 0) break;
    hash.update(part);
    yield part;
  }
  const isRight = left === 0 && (sha256 === undefined || hash.digest("hex") === sha256);
  if (!isRight)
    throw new SlipwayError("storage_damaged", `The storage holds other bytes of ${path} than were written.`);
}
