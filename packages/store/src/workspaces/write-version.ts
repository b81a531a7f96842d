import { createHash } from "node:crypto";
import { hasCode, SlipwayError } from "@slipway/contract";
import type { ObjectContent, ObjectStorage, StorageCall } from "../objects/storage.ts";
import { type Bounded, createBounded } from "./bounded.ts";
import { checkTree, type Entry, type FileEntry, formatManifest, type Manifest } from "./manifest.ts";
import { newVersionId } from "./version-id.ts";
import { fileKey, manifestKey, removeFiles, removeUnfinished, syncLimitMs, unfinishedKey } from "./versions.ts";

export interface VersionWriter {
  /** A directory or a link. */
  add(entry: Exclude<Entry, FileEntry>): void;
  /** Work that uploads or copies runs side by side. */
  readonly transfers: Bounded;
  /** A file of another version: its bytes do not travel. False if that version is gone meanwhile. */
  copy(entry: FileEntry, fromVersion: string): Promise<boolean>;
  /** Its size and hash are those of the bytes that come. */
  upload(entry: { readonly path: string; readonly mode: number }, content: ObjectContent): Promise<void>;
}

export interface WrittenVersion {
  readonly version: string;
  readonly files: number;
  readonly uploadedFiles: number;
  readonly uploadedBytes: number;
}

const transfersAtOnce = 16;

/** Writes all files and then the manifest. A failure leaves no version; neither does a kill, at any moment. */
export async function writeVersion(
  storage: ObjectStorage,
  newest: string | undefined,
  fill: (writer: VersionWriter) => Promise<void>,
  options: StorageCall,
): Promise<WrittenVersion> {
  const startedAtMs = Date.now();
  await removeUnfinished(storage, startedAtMs, options);
  const version = newVersionId(startedAtMs, newest);
  await storage.create(unfinishedKey(version), `${crypto.randomUUID()}\n`, options);
  const transfers = createBounded(transfersAtOnce);
  try {
    const { writer, entries, uploaded } = createWriter(storage, version, transfers, options);
    await fill(writer);
    await transfers.end();
    const sorted = entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    checkTree(sorted, (mistake) => new SlipwayError("file_not_storable", `The tree cannot be stored: ${mistake}.`));
    if (Date.now() - startedAtMs > syncLimitMs) throw tookTooLong();
    const manifest: Manifest = {
      format: "slipway-version-1",
      version,
      createdAtMs: startedAtMs,
      after: newest ?? null,
      entries: sorted,
    };
    await storage.create(manifestKey(version), formatManifest(manifest), options);
    // Without this the version is whole all the same.
    await storage.delete(unfinishedKey(version), options).catch(() => undefined);
    return { version, files: sorted.filter(({ type }) => type === "file").length, ...uploaded };
  } catch (error) {
    await transfers.end().catch(() => undefined);
    await discard(storage, version);
    throw error;
  }
}

const discardMs = 30_000;

/** What cannot be removed now, a later sync removes. A manifest whose answer was lost is the whole version, and stays. */
async function discard(storage: ObjectStorage, version: string): Promise<void> {
  const options = { signal: AbortSignal.timeout(discardMs) };
  try {
    await storage.head(manifestKey(version), options);
  } catch (error) {
    if (hasCode(error, "object_not_found")) await removeFiles(storage, version, options).catch(() => undefined);
  }
}

function createWriter(storage: ObjectStorage, version: string, transfers: Bounded, options: StorageCall) {
  const entries: Entry[] = [];
  const uploaded = { uploadedFiles: 0, uploadedBytes: 0 };
  const writer: VersionWriter = {
    transfers,
    add: (entry) => void entries.push(entry),
    async copy(entry, fromVersion) {
      try {
        await storage.copy(fileKey(fromVersion, entry.path), fileKey(version, entry.path), options);
      } catch (error) {
        if (hasCode(error, "object_not_found")) return false;
        throw error;
      }
      entries.push(entry);
      return true;
    },
    async upload({ path, mode }, content) {
      const hash = createHash("sha256");
      const hashed = typeof content === "string" ? Buffer.from(content) : content;
      if (hashed instanceof Uint8Array) hash.update(hashed);
      const body = hashed instanceof Uint8Array ? hashed : hashing(hashed, (part) => hash.update(part));
      const { size } = await storage.put(fileKey(version, path), body, options);
      entries.push({ type: "file", path, mode, size, sha256: hash.digest("hex") });
      uploaded.uploadedFiles++;
      uploaded.uploadedBytes += size;
    },
  };
  return { writer, entries, uploaded };
}

async function* hashing(
  parts: AsyncIterable<Uint8Array>,
  take: (part: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for await (const part of parts) {
    take(part);
    yield part;
  }
}

function tookTooLong(): SlipwayError {
  return new SlipwayError("storage_unavailable", `The sync took more than ${syncLimitMs / 3_600_000} hours.`);
}
