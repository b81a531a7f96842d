import { randomUUID } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { copyFile, link, lstat, mkdir, open, readdir, readFile, rename, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import {
  checkKey,
  draftsDirectory,
  maxPageObjects,
  type ObjectContent,
  type ObjectInfo,
  type ObjectStorage,
  objectExists,
  objectNotFound,
} from "./storage.ts";

const abandonedMs = 24 * 3_600_000;
const readBytes = 256 * 1024;

/** Objects are files that only their owner can read and nobody writes: copies share their bytes by hard links. */
export async function openDirectoryStorage(root: string): Promise<ObjectStorage> {
  const drafts = join(root, draftsDirectory);
  await storing(root, async () => {
    // The parent may be the state directory, which others must be able to pass through.
    await mkdir(dirname(root), { recursive: true, mode: 0o711 });
    await mkdir(root, { recursive: true, mode: 0o700 });
    await mkdir(drafts, { recursive: true, mode: 0o700 });
    await removeAbandoned(drafts);
  });
  const at = (key: string) => join(root, checkKey(key));
  /** Writes a file and then gives it its name. */
  const publish = async (key: string, fill: (draft: string) => Promise<void>, name = rename) => {
    const [path, draft] = [at(key), join(drafts, randomUUID())];
    try {
      await fill(draft);
      await inParent(path, () => name(draft, path));
    } finally {
      await unlink(draft).catch(ignoreMissing);
    }
  };
  return {
    put: (key, content, { signal } = {}) =>
      storing(key, async () => {
        let size = 0;
        await publish(key, async (draft) => {
          size = await writeDraft(draft, content, signal);
        });
        return { size };
      }),
    create: (key, content) =>
      storing(key, async () => {
        try {
          await publish(key, (draft) => writeDraft(draft, content).then(() => undefined), link);
        } catch (error) {
          if (codeOf(error) !== "EEXIST" || !(await readFile(at(key))).equals(Buffer.from(content))) throw error;
        }
      }),
    get: (key, { offset = 0, length, signal } = {}) => readRange(key, at(key), offset, length, signal),
    head: (key) => reading(key, async () => infoOf(key, at(key))),
    async list(prefix, { after = "", limit = maxPageObjects, signal } = {}) {
      const wanted = Math.min(limit, maxPageObjects);
      const objects: ObjectInfo[] = [];
      const start = prefix.slice(0, prefix.lastIndexOf("/") + 1);
      if (start !== "") checkKey(start.slice(0, -1));
      for await (const key of keysBelow(root, start, prefix, Buffer.from(after))) {
        signal?.throwIfAborted();
        if (objects.length === wanted) return { objects, next: objects.at(-1)?.key ?? null };
        // Deleted since it was listed.
        const info = await infoOf(key, at(key)).catch(ignoreMissing);
        if (info) objects.push(info);
      }
      return { objects, next: null };
    },
    copy: (from, to) =>
      reading(from, async () => {
        const source = at(from);
        await publish(to, (draft) => link(source, draft).catch(() => copyFile(source, draft, constants.COPYFILE_EXCL)));
      }),
    delete: (key) =>
      storing(key, async () => {
        const path = at(key);
        await unlink(path).catch(ignoreMissing);
        await pruneParents(root, path);
      }),
    async [Symbol.asyncDispose]() {},
  };
}

async function writeDraft(draft: string, content: ObjectContent, signal?: AbortSignal): Promise<number> {
  await using file = await open(draft, "wx", 0o400);
  let size = 0;
  const parts = typeof content === "string" || content instanceof Uint8Array ? [Buffer.from(content)] : content;
  for await (const part of parts) {
    signal?.throwIfAborted();
    await file.writeFile(part);
    size += part.length;
  }
  return size;
}

/** A delete may remove an empty parent in between. */
async function inParent(path: string, work: () => Promise<void>): Promise<void> {
  for (let tries = 5; ; tries--) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || tries === 1) throw error;
    }
  }
}

async function pruneParents(root: string, path: string): Promise<void> {
  try {
    for (let parent = dirname(path); parent !== root; parent = dirname(parent)) await rmdir(parent);
  } catch {
    // It holds other objects, or another delete was faster.
  }
}

async function* readRange(
  key: string,
  path: string,
  offset: number,
  length = Number.POSITIVE_INFINITY,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  await using file = await reading(key, () => open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  let left = length;
  for (let position = offset; left > 0; ) {
    signal?.throwIfAborted();
    // A fresh buffer per chunk: the consumer may keep it.
    const buffer = Buffer.allocUnsafe(Math.min(readBytes, left));
    const { bytesRead } = await reading(key, () => file.read(buffer, 0, buffer.length, position));
    if (bytesRead === 0) return;
    position += bytesRead;
    left -= bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function infoOf(key: string, path: string): Promise<ObjectInfo> {
  const info = await lstat(path);
  if (!info.isFile()) throw objectNotFound(key);
  return { key, size: info.size, modifiedAtMs: Math.floor(info.mtimeMs) };
}

/** Keys below a directory in the order of their bytes; a directory's name counts with its slash. */
async function* keysBelow(root: string, directory: string, prefix: string, after: Buffer): AsyncGenerator<string> {
  const entries = await readdir(join(root, directory), { withFileTypes: true }).catch(noneWhenMissing);
  const keys = entries
    .filter((entry) => entry.isFile() || (entry.isDirectory() && entry.name !== draftsDirectory))
    .map((entry) => directory + entry.name + (entry.isDirectory() ? "/" : ""))
    .filter((key) => key.startsWith(prefix))
    .map((key) => ({ key, bytes: Buffer.from(key) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  for (const { key, bytes } of keys) {
    if (key.endsWith("/")) {
      const isBefore = Buffer.compare(bytes, after.subarray(0, bytes.length)) < 0;
      if (!isBefore) yield* keysBelow(root, key, prefix, after);
    } else if (Buffer.compare(bytes, after) > 0) yield key;
  }
}

/** What a killed process had begun to write. */
async function removeAbandoned(drafts: string): Promise<void> {
  for (const name of await readdir(drafts)) {
    const path = join(drafts, name);
    const info = await stat(path).catch(ignoreMissing);
    if (info && Date.now() - info.mtimeMs > abandonedMs) await unlink(path).catch(ignoreMissing);
  }
}

/** Errors of the file system by their code; others are the caller's own. */
async function storing<T>(key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failureOf(key, error);
  }
}

async function reading<T>(key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isMissing = ["ENOENT", "ENOTDIR", "EISDIR"].includes(codeOf(error) ?? "");
    throw isMissing ? objectNotFound(key, error) : failureOf(key, error);
  }
}

function failureOf(key: string, error: unknown): unknown {
  const cause = { cause: error };
  const words = error instanceof Error ? error.message : String(error);
  switch (codeOf(error)) {
    case "EEXIST":
      return objectExists(key, error);
    case "ENAMETOOLONG":
    case "ENOTDIR":
    case "EISDIR":
    case "ENOTEMPTY":
      return new SlipwayError("invalid_object_key", `${key} cannot be the name of a file: ${words}`, cause);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new SlipwayError("storage_refused", `SLIPWAY_STORAGE: ${words}`, cause);
    case "ENOSPC":
    case "EDQUOT":
      return new SlipwayError("out_of_disk", `SLIPWAY_STORAGE: ${words}`, cause);
    case "EIO":
    case "EMFILE":
    case "ENFILE":
    case "ESTALE":
      return new SlipwayError("storage_unavailable", `SLIPWAY_STORAGE: ${words}`, cause);
    default:
      return error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function ignoreMissing(error: unknown): undefined {
  if (codeOf(error) === "ENOENT") return undefined;
  throw error;
}

function noneWhenMissing(error: unknown): Dirent[] {
  if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
  throw error;
}
