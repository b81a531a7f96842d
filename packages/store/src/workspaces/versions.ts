import { hasCode, SlipwayError } from "@slipway/contract";
import { listAll, type ObjectStorage, readObject, type StorageCall } from "../objects/storage.ts";
import { createBounded } from "./bounded.ts";
import { type Manifest, maxManifestBytes, parseManifest } from "./manifest.ts";
import { checkVersionId, isVersionId, versionIdLength, versionTimeMs } from "./version-id.ts";

/**
 * The objects of a place:
 * - `versions/<id>/<path>`: the files of a version, plain, all of them
 * - `manifests/<id>.json`: what the version holds; written last, so that a version is whole or is none
 * - `unfinished/<id>`: a version that is being written, or whose writer has died
 */
export const fileKey = (version: string, path: string) => `versions/${version}/${path}`;
export const manifestKey = (version: string) => `manifests/${version}.json`;
export const unfinishedKey = (version: string) => `unfinished/${version}`;

/** An id of a version and one of its files: not what a user put at the place by other means. */
export function isOfVersions(key: string): boolean {
  const [first = "", second = ""] = key.split("/");
  if (first === "manifests") return isVersionId(second.replace(/\.json$/, ""));
  return (first === "versions" || first === "unfinished") && isVersionId(second);
}

export interface VersionInfo {
  readonly version: string;
  readonly createdAtMs: number;
}

/** Newest first. */
export async function listVersions(storage: ObjectStorage, options: StorageCall): Promise<VersionInfo[]> {
  const versions: VersionInfo[] = [];
  for await (const { key } of listAll(storage, "manifests/", options)) {
    const version = key.slice("manifests/".length, "manifests/".length + versionIdLength);
    if (!isVersionId(version) || key !== manifestKey(version)) continue;
    versions.push({ version, createdAtMs: versionTimeMs(version) });
  }
  return versions.reverse();
}

export async function readManifest(storage: ObjectStorage, version: string, options: StorageCall): Promise<Manifest> {
  checkVersionId(version);
  try {
    const bytes = await readObject(storage, manifestKey(version), { ...options, maxBytes: maxManifestBytes });
    return parseManifest(bytes.toString(), version);
  } catch (error) {
    if (!hasCode(error, "object_not_found")) throw error;
    throw new SlipwayError("version_not_found", `There is no version ${version}.`, { cause: error });
  }
}

/** First the manifest: what is left of the version after a failure is none. */
export async function removeVersion(storage: ObjectStorage, version: string, options: StorageCall): Promise<void> {
  checkVersionId(version);
  await storage.put(unfinishedKey(version), "being removed\n", options);
  await storage.delete(manifestKey(version), options);
  await removeFiles(storage, version, options);
}

/** Longer than any sync may take: `syncLimitMs`. */
const abandonedMs = 24 * 3_600_000;
export const syncLimitMs = 12 * 3_600_000;

/** What syncs left behind that were killed. */
export async function removeUnfinished(storage: ObjectStorage, nowMs: number, options: StorageCall): Promise<void> {
  for await (const { key, modifiedAtMs } of listAll(storage, "unfinished/", options)) {
    const version = key.slice("unfinished/".length);
    if (!isVersionId(version) || nowMs - modifiedAtMs < abandonedMs) continue;
    // Its manifest came last, and only the mark is left.
    const isWhole = await storage.head(manifestKey(version), options).then(
      () => true,
      (error: unknown) => {
        if (hasCode(error, "object_not_found")) return false;
        throw error;
      },
    );
    if (isWhole) await storage.delete(key, options);
    else await removeFiles(storage, version, options);
  }
}

export async function removeFiles(storage: ObjectStorage, version: string, options: StorageCall): Promise<void> {
  const deletes = createBounded(16);
  for await (const { key } of listAll(storage, fileKey(version, ""), options)) {
    await deletes.add(() => storage.delete(key, options));
  }
  await deletes.end();
  await storage.delete(unfinishedKey(version), options);
}
