import { SlipwayError } from "@slipway/contract";

export type ObjectContent = Uint8Array | string | AsyncIterable<Uint8Array>;

export interface ObjectInfo {
  readonly key: string;
  readonly size: number;
  readonly modifiedAtMs: number;
}

export interface ObjectPage {
  readonly objects: readonly ObjectInfo[];
  /** The key to go on after; null at the end. */
  readonly next: string | null;
}

export interface StorageCall {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Bytes by key, kept for longer than any machine: files of workspaces, packs, screenshots. Keys are relative paths, and no
 * key is a directory of another one. Readers see a whole object, the old or the new one. docs/decisions/0026 says why the port is this small.
 */
export interface ObjectStorage extends AsyncDisposable {
  put(key: string, content: ObjectContent, options?: StorageCall): Promise<{ size: number }>;
  /**
   * A claim: fails with `object_exists` when the key is taken. An object with exactly this content counts as made by this
   * call, which may have been repeated after a lost answer: put something unique into a claim.
   */
  create(key: string, content: Uint8Array | string, options?: StorageCall): Promise<void>;
  /** Fails with `object_not_found` on its first read. A range past the end is empty. */
  get(key: string, options?: StorageCall & { offset?: number; length?: number }): AsyncIterable<Uint8Array>;
  head(key: string, options?: StorageCall): Promise<ObjectInfo>;
  /** Keys that begin with the prefix, in the order of their UTF-8 bytes, at most 1,000 at a time. */
  list(prefix: string, options?: StorageCall & { after?: string; limit?: number }): Promise<ObjectPage>;
  /** Within the storage: the bytes do not pass through this machine, nor does it hold them twice if it can share them. */
  copy(from: string, to: string, options?: StorageCall): Promise<void>;
  /** Also succeeds when there is no such object. */
  delete(key: string, options?: StorageCall): Promise<void>;
}

export const maxPageObjects = 1000;
const maxKeyBytes = 1024;
/** Of the directory adapter, for objects that are being written. */
export const draftsDirectory = ".slipway-drafts";

/** What every adapter asks of a key, so that no key can leave a directory or mean two things. */
export function checkKey(key: string): string {
  const parts = key.split("/");
  const isPlain = parts.every((part) => part !== "" && part !== "." && part !== "..") && !key.includes("\0");
  if (!isPlain || !key.isWellFormed() || parts[0] === draftsDirectory) {
    throw new SlipwayError("invalid_object_key", `${JSON.stringify(key)} is not a name that an object can have.`);
  }
  if (Buffer.byteLength(key) > maxKeyBytes) {
    const start = JSON.stringify(key.slice(0, 80));
    throw new SlipwayError("invalid_object_key", `An object's name has at most ${maxKeyBytes} bytes: ${start}...`);
  }
  return key;
}

export function objectNotFound(key: string, cause?: unknown): SlipwayError {
  return new SlipwayError("object_not_found", `There is no object ${key}.`, { cause });
}

export function objectExists(key: string, cause?: unknown): SlipwayError {
  return new SlipwayError("object_exists", `There is an object ${key} already.`, { cause });
}

/** The part of a storage whose keys begin with a directory. Closing it leaves the storage open. */
export function below(storage: ObjectStorage, directory: string): ObjectStorage {
  if (directory === "") return storage;
  const base = `${checkKey(directory)}/`;
  const inside = (key: string) => base + checkKey(key);
  const outside = (info: ObjectInfo) => ({ ...info, key: info.key.slice(base.length) });
  return {
    put: (key, content, options) => storage.put(inside(key), content, options),
    create: (key, content, options) => storage.create(inside(key), content, options),
    get: (key, options) => storage.get(inside(key), options),
    head: async (key, options) => outside(await storage.head(inside(key), options)),
    async list(prefix, { after, ...options } = {}) {
      const page = await storage.list(base + prefix, {
        ...options,
        ...(after !== undefined && { after: base + after }),
      });
      return { objects: page.objects.map(outside), next: page.next?.slice(base.length) ?? null };
    },
    copy: (from, to, options) => storage.copy(inside(from), inside(to), options),
    delete: (key, options) => storage.delete(inside(key), options),
    async [Symbol.asyncDispose]() {},
  };
}

export async function* listAll(
  storage: ObjectStorage,
  prefix: string,
  options: StorageCall = {},
): AsyncGenerator<ObjectInfo> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: ObjectPage = await storage.list(prefix, { ...options, ...(after !== undefined && { after }) });
    yield* page.objects;
    after = page.next;
  }
}

export async function readObject(
  storage: Pick<ObjectStorage, "get">,
  key: string,
  options: StorageCall & { maxBytes: number },
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of storage.get(key, options)) {
    bytes += part.length;
    if (bytes > options.maxBytes) {
      throw new SlipwayError("storage_damaged", `The object ${key} has more than ${options.maxBytes} bytes.`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

export async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}
