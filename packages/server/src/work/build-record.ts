import {
  type BuildId,
  type BuildSettings,
  type BuildSource,
  buildSettingsSchema,
  buildSourceSchema,
} from "@slipway/contract";
import { type MergeQueue, readQueue, type Store, type StoredBuild } from "@slipway/engine";

/** The merge queue in a build's record; null before the build has one. */
export function queueOf({ build }: Pick<StoredBuild, "build">): MergeQueue | null {
  return readQueue(build.details["queue"] ?? null);
}

/** The settings in a build's record. */
export function settingsOf({ details }: Pick<StoredBuild["build"], "details">): BuildSettings {
  return buildSettingsSchema.parse(details["settings"] ?? {});
}

/** Reads the source that a build starts from, from the event of its request. */
export async function readSource({ events }: Pick<Store, "events">, build: BuildId): Promise<BuildSource | null> {
  const [first] = await events.read(build, 0, { limit: 1 });
  return buildSourceSchema.safeParse(first?.data["source"]).data ?? null;
}
