import { SlipwayError } from "@slipway/contract";
import type { CallOptions, TreeEntry } from "@slipway/sandbox";
import { openObjectStorage } from "../objects/open.ts";
import type { StorageSettings } from "../objects/settings.ts";
import { below, type ObjectStorage } from "../objects/storage.ts";
import { type Hydrated, hydrate, restoreTree } from "./hydrate.ts";
import { type Place, placeDirectory } from "./places.ts";
import type { SandboxTree } from "./sandbox-tree.ts";
import { type SyncResult, syncVersion } from "./sync.ts";
import { findSource, type TreeSource, treeEntries } from "./tree-source.ts";
import { listVersions, removeVersion, type VersionInfo } from "./versions.ts";
import { type WrittenVersion, writeVersion } from "./write-version.ts";

/** A place in the storage that keeps versions of a tree of files: a workspace, a volume, or the shared files. */
export interface Workspace {
  /** Newest first. */
  versions(options?: CallOptions): Promise<VersionInfo[]>;
  /** Puts a version, by default the newest, into a directory that has none of it. A place that holds nothing gives nothing. */
  hydrate(sandbox: SandboxTree, directory: string, options?: HydrateOptions): Promise<Hydrated>;
  /** Makes a directory equal to a version. */
  restore(sandbox: SandboxTree, directory: string, options?: VersionOptions): Promise<Hydrated & { removed: number }>;
  /** Keeps a directory as a new version. Two at once each make their own; the later one is the newest. */
  sync(sandbox: SandboxTree, directory: string, options?: CallOptions): Promise<SyncResult>;
  /** Keeps a tree of this machine as a new version. */
  publish(entries: AsyncIterable<TreeEntry>, options?: CallOptions): Promise<WrittenVersion>;
  /** The tree of a version, for this machine. It is untrusted, like all that comes out of a sandbox. */
  read(options?: VersionOptions): Promise<{ version: string | null; entries: AsyncIterable<TreeEntry> }>;
  removeVersion(version: string, options?: CallOptions): Promise<void>;
}

export interface VersionOptions extends CallOptions {
  readonly version?: string | undefined;
}

export interface HydrateOptions extends VersionOptions {
  /** Takes the right to write from every mode. */
  readonly readOnly?: boolean;
}

export interface Workspaces extends AsyncDisposable {
  /** Fails with the settings' mistakes, or when the storage cannot be used. */
  at(place: Place): Promise<Workspace>;
}

/** Opens what is needed on first use. */
export function openWorkspaces(settings: StorageSettings): Workspaces {
  const opened = new Map<string, Promise<ObjectStorage>>();
  const open = (name: string, place: StorageSettings["root"]) => {
    const storage = opened.get(name) ?? openObjectStorage(settings, place);
    opened.set(name, storage);
    return storage;
  };
  return {
    async at(place) {
      if (place.kind === "s3") return createWorkspace(await open(`${place.bucket}/${place.prefix}`, place));
      return createWorkspace(below(await open("", settings.root), placeDirectory(place)));
    },
    async [Symbol.asyncDispose]() {
      const outcomes = await Promise.allSettled(opened.values());
      for (const outcome of outcomes) if (outcome.status === "fulfilled") await outcome.value[Symbol.asyncDispose]();
    },
  };
}

export function createWorkspace(storage: ObjectStorage): Workspace {
  const withSource = async <T>(options: VersionOptions, use: (source: TreeSource) => Promise<T>): Promise<T> =>
    await use(await findSource(storage, options.version, options));
  return {
    versions: (options = {}) => listVersions(storage, options),
    hydrate: (sandbox, directory, options = {}) =>
      withSource(options, (source) =>
        hydrate(storage, options.readOnly ? readOnly(source) : source, sandbox, directory, options),
      ),
    restore: (sandbox, directory, options = {}) =>
      withSource(options, (source) => {
        // Else a mistyped place would empty the directory.
        refuseNothing(source);
        return restoreTree(storage, source, sandbox, directory, options);
      }),
    sync: (sandbox, directory, options = {}) => syncVersion(storage, sandbox, directory, options),
    async publish(entries, options = {}) {
      const [newest] = await listVersions(storage, options);
      return await writeVersion(
        storage,
        newest?.version,
        async (writer) => {
          for await (const entry of entries) {
            if (entry.type === "file") await writer.upload(entry, entry.content);
            else writer.add(entry);
          }
        },
        options,
      );
    },
    read: (options = {}) =>
      withSource(options, async (source) => {
        refuseNothing(source);
        return { version: source.version, entries: treeEntries(storage, source.entries, options) };
      }),
    async removeVersion(version, options = {}) {
      const known = await listVersions(storage, options);
      if (!known.some((info) => info.version === version)) {
        throw new SlipwayError("version_not_found", `There is no version ${version}.`);
      }
      await removeVersion(storage, version, options);
    },
  };
}

function refuseNothing({ version, entries }: TreeSource): void {
  if (version === null && entries.length === 0) {
    throw new SlipwayError("version_not_found", "There are neither versions nor files at this place.");
  }
}

function readOnly({ version, entries }: TreeSource): TreeSource {
  const closed = entries.map((entry) => (entry.type === "symlink" ? entry : { ...entry, mode: entry.mode & ~0o222 }));
  return { version, entries: closed };
}
