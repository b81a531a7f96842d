import { settingsError } from "@slipway/contract";
import { openDirectoryStorage } from "./directory.ts";
import type { S3Place, StorageSettings } from "./settings.ts";
import { below, type ObjectStorage } from "./storage.ts";

/** Opens the storage that the settings name or, with a place, that one with the same credentials. */
export async function openObjectStorage(
  { root, s3 }: StorageSettings,
  place: StorageSettings["root"] = root,
): Promise<ObjectStorage> {
  if ("directory" in place) return await openDirectoryStorage(place.directory);
  if (s3 === undefined) {
    throw settingsError([`AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY: ${s3Text(place)} is in S3, which needs both.`]);
  }
  // Loaded on first use: the client has hundreds of files.
  const { openS3Storage } = await import("./s3.ts");
  const bucket = await openS3Storage({ ...s3, bucket: place.bucket });
  return { ...below(bucket, place.prefix), [Symbol.asyncDispose]: () => bucket[Symbol.asyncDispose]() };
}

function s3Text({ bucket, prefix }: S3Place): string {
  return `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
}
