import { hasCode } from "@slipway/contract";
import type { CallOptions } from "@slipway/sandbox";
import { collect, type ObjectStorage } from "../objects/storage.ts";
import type { FileEntry, Manifest } from "./manifest.ts";
import { findUnchanged, type ListedEntry, listTree, type SandboxTree } from "./sandbox-tree.ts";
import { listVersions, readManifest } from "./versions.ts";
import { type VersionWriter, type WrittenVersion, writeVersion } from "./write-version.ts";

export interface SyncResult extends WrittenVersion {
  /** False: the newest version holds exactly this tree, and is the answer. */
  readonly isNew: boolean;
  /** Pipes, sockets and devices. */
  readonly leftOut: readonly string[];
}

/** Makes a version of a sandbox's directory. Only the content of files that the newest version does not have travels. */
export async function syncVersion(
  storage: ObjectStorage,
  sandbox: SandboxTree,
  directory: string,
  options: CallOptions,
): Promise<SyncResult> {
  const { entries: listed, leftOut } = await listTree(sandbox, directory, options);
  const base = await newestManifest(storage, options);
  const known = filesOf(base);
  const unchanged = await findUnchanged(sandbox, directory, listed, known, options);
  if (base !== undefined && isSameTree(base, listed, unchanged)) {
    const none = { files: known.size, uploadedFiles: 0, uploadedBytes: 0 };
    return { version: base.version, isNew: false, leftOut, ...none };
  }
  const fill = (writer: VersionWriter) => fillFrom(sandbox, directory, { listed, unchanged, base }, writer, options);
  return { ...(await writeVersion(storage, base?.version, fill, options)), isNew: true, leftOut };
}

/** A newest version that is removed meanwhile is none. */
async function newestManifest(storage: ObjectStorage, options: CallOptions): Promise<Manifest | undefined> {
  const [newest] = await listVersions(storage, options);
  if (newest === undefined) return undefined;
  try {
    return await readManifest(storage, newest.version, options);
  } catch (error) {
    if (hasCode(error, "version_not_found")) return undefined;
    throw error;
  }
}

function filesOf(manifest: Manifest | undefined): ReadonlyMap<string, FileEntry> {
  const files = manifest?.entries.filter((entry) => entry.type === "file") ?? [];
  return new Map(files.map((entry) => [entry.path, entry]));
}

function isSameTree(
  base: Manifest,
  listed: readonly ListedEntry[],
  unchanged: ReadonlyMap<string, FileEntry>,
): boolean {
  if (base.entries.length !== listed.length) return false;
  const others = new Map(base.entries.map((entry) => [entry.path, entry]));
  return listed.every((entry) => {
    const other = others.get(entry.path);
    if (other === undefined) return false;
    if (entry.type === "symlink") return other.type === "symlink" && other.target === entry.target;
    if (other.type !== entry.type || other.mode !== entry.mode) return false;
    return entry.type === "directory" || unchanged.has(entry.path);
  });
}

interface Plan {
  readonly listed: readonly ListedEntry[];
  readonly unchanged: ReadonlyMap<string, FileEntry>;
  readonly base: Manifest | undefined;
}
type ListedFile = Extract<ListedEntry, { type: "file" }>;

/** Beyond this many, one download of the whole tree is faster than a call for each file, if most of it is needed. */
const singleReads = 200;

async function fillFrom(
  sandbox: SandboxTree,
  directory: string,
  { listed, unchanged, base }: Plan,
  writer: VersionWriter,
  options: CallOptions,
): Promise<void> {
  const travelling = new Map<string, ListedFile>();
  const copies: { readonly listed: ListedFile; readonly known: FileEntry }[] = [];
  for (const entry of listed) {
    if (entry.type !== "file") {
      writer.add(entry);
      continue;
    }
    const known = unchanged.get(entry.path);
    if (known === undefined) travelling.set(entry.path, entry);
    else copies.push({ listed: entry, known });
  }
  for (const { listed: entry, known } of copies) {
    await writer.transfers.add(async () => {
      const isCopied = await writer.copy({ ...known, mode: entry.mode }, base?.version ?? "");
      if (!isCopied) await uploadOne(sandbox, directory, entry, writer, options);
    });
  }
  if (travelling.size > singleReads && travelling.size > copies.length) {
    return await uploadTree(sandbox, directory, travelling, writer, options);
  }
  for (const entry of travelling.values()) {
    await writer.transfers.add(() => uploadOne(sandbox, directory, entry, writer, options));
  }
}

const wholeFileBytes = 1024 * 1024;

/** A file that is deleted meanwhile is not in the version. One that grows is cut where it ended when it was listed. */
async function uploadOne(
  { files }: SandboxTree,
  directory: string,
  { path, mode, size }: ListedFile,
  writer: VersionWriter,
  options: CallOptions,
): Promise<void> {
  const content = files.read(`${directory}/${path}`, { ...options, length: size });
  try {
    await writer.upload({ path, mode }, size <= wholeFileBytes ? await collect(content) : content);
  } catch (error) {
    if (!hasCode(error, "file_not_found") && !hasCode(error, "not_a_file")) throw error;
  }
}

async function uploadTree(
  { files }: SandboxTree,
  directory: string,
  wanted: ReadonlyMap<string, ListedFile>,
  writer: VersionWriter,
  options: CallOptions,
): Promise<void> {
  for await (const entry of files.download(directory, options)) {
    const listed = wanted.get(entry.path);
    if (entry.type !== "file" || listed === undefined) continue;
    const { content } = entry;
    const { mode, size, path } = listed;
    if (typeof content === "string" || content instanceof Uint8Array) {
      const bytes = Buffer.from(content);
      await writer.transfers.add(() => writer.upload({ path, mode }, bytes.subarray(0, size)));
    } else {
      await writer.upload({ path, mode }, first(content, size));
    }
  }
}

async function* first(parts: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const part of parts) {
    if (left > 0) yield part.subarray(0, left);
    left -= part.length;
    // Not left early: the rest of the tree follows in the same stream.
  }
}
