import { join, posix } from "node:path";
import { run } from "@slipway/sandbox";
import type { Box } from "../boxes/boxes.ts";
import { invalid } from "../refuse.ts";
import type { Methods } from "../serve.ts";
import type { NamedRequest, VolumeMount } from "../wire.ts";
import { commitTree, type Seen, seenIn } from "./commit.ts";
import { createNamed } from "./named.ts";
import { StoredTree } from "./stored-tree.ts";

export interface Volumes {
  readonly methods: Methods;
  /** Refuses mounts of volumes that do not exist, and paths that lead out. Before a sandbox is made for them. */
  check(mounts: readonly VolumeMount[]): void;
  /** Brings the volumes' committed content into a sandbox. */
  mount(box: Box, mounts: readonly VolumeMount[]): Promise<MountedVolumes>;
}

/** A sandbox has a copy of a volume: others see what it changed after its commit, and their own reload. */
export interface MountedVolumes {
  commit(): Promise<void>;
  reload(): Promise<void>;
}

export function createVolumes(directory: string): Volumes {
  const volumes = createNamed<StoredTree>("Volume", "vo");
  let made = 0;
  return {
    check(mounts) {
      for (const mount of mounts) {
        if (!mount.mountPath.startsWith("/") || posix.normalize(mount.mountPath) === "/")
          throw invalid(`Invalid mount path: ${mount.mountPath}`);
        subPathOf(mount.subPath);
        volumes.get(mount.volumeId);
      }
    },
    async mount(box, mounts) {
      const mounted = await Promise.all(mounts.map((mount) => mountOne(box, mount, volumes.get(mount.volumeId))));
      return {
        async commit() {
          for (const volume of mounted) await volume.commit();
        },
        async reload() {
          for (const volume of mounted) await volume.reload();
        },
      };
    },
    methods: {
      volumeGetOrCreate(request: NamedRequest & { version?: number }) {
        const { id, name } = volumes.resolve(request, () => new StoredTree(join(directory, String(++made))));
        return { volumeId: id, version: request.version ?? 1, metadata: { name } };
      },
      async volumeDelete({ volumeId }: { volumeId: string }) {
        await volumes.delete(volumeId).clear();
      },
      volumeHeartbeat({ volumeId }: { volumeId: string }) {
        volumes.get(volumeId);
      },
      volumeCommit: () => ({ skipReload: true }),
      volumeReload: () => ({}),
    },
  };
}

/** A path inside a volume, without a way out of it. */
function subPathOf(subPath = ""): string {
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..") || subPath.includes("\0")) throw invalid(`Invalid sub path: ${subPath}`);
  return parts.join("/");
}

async function mountOne(
  box: Box,
  { mountPath, readOnly, subPath }: VolumeMount,
  tree: StoredTree,
): Promise<MountedVolumes> {
  const root = subPathOf(subPath);
  let seen: Seen = new Map();
  const load = async () => {
    await box.files.remove(mountPath, { recursive: true }).catch(() => {});
    await run(box, ["mkdir", "-p", "--", mountPath]);
    await box.files.upload(mountPath, tree.below(root));
    seen = await seenIn(box, mountPath);
  };
  const commit = async () => {
    if (!readOnly) seen = await commitTree(box, { mountPath, root, tree }, seen);
  };
  await load();
  return {
    commit,
    async reload() {
      await commit();
      await load();
    },
  };
}
