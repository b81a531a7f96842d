import { join, posix } from "node:path";
import { run } from "@slipway/sandbox";
import type { CallContext } from "nice-grpc";
import type { Box } from "./boxes/boxes.ts";
import type { Images } from "./images/images.ts";
import { StoredTree } from "./objects/stored-tree.ts";
import { invalid, notFound } from "./refuse.ts";
import type { RouterAccess } from "./router.ts";
import type { Methods } from "./serve.ts";
import { once } from "./snapshots.ts";
import type { TaskRequest } from "./wire.ts";

interface DirectoryRequest extends TaskRequest {
  readonly path: Uint8Array;
}
interface SnapshotRequest extends DirectoryRequest {
  readonly snapshotId: string;
  readonly ttlSeconds: number;
}
interface MountRequest extends DirectoryRequest {
  /** Empty: an empty directory. */
  readonly imageId: string;
}

/** Where a directory waits while something is mounted over it. */
const hidden = "/__modal/hidden";

/** Images of one directory, and copies of them at a path of a running sandbox. */
export function directoryMethods(images: Images, { running }: RouterAccess, directory: string): Methods {
  const takeOnce = once();
  let taken = 0;
  return {
    taskSnapshotDirectory(request: SnapshotRequest, context: CallContext) {
      const { box } = running(request, context);
      const path = pathOf(request);
      return takeOnce(request.snapshotId, async () => {
        const tree = new StoredTree(join(directory, String(++taken)));
        for await (const entry of box.files.download(path)) await tree.put(entry.path, entry);
        const content = { snapshot: null, environment: {}, workdir: null, entrypoint: [], directory: tree };
        return images.add(content, request.ttlSeconds);
      });
    },
    async taskMountDirectory(request: MountRequest, context: CallContext) {
      const { box } = running(request, context);
      const path = pathOf(request);
      const tree = request.imageId === "" ? null : images.get(request.imageId).directory;
      if (tree === undefined) throw invalid(`Image '${request.imageId}' is not the snapshot of a directory.`);
      await shell(box, `mkdir -p "$(dirname "$2")" && test -d "$1" && mv "$1" "$2" && mkdir "$1"`, path);
      if (tree !== null) await box.files.upload(path, tree.below(""));
      return {};
    },
    async taskUnmountDirectory(request: DirectoryRequest, context: CallContext) {
      const { box } = running(request, context);
      await shell(box, `test -d "$2" && rm -rf "$1" && mv "$2" "$1"`, pathOf(request));
      return {};
    },
  };
}

function pathOf({ path }: DirectoryRequest): string {
  const text = Buffer.from(path).toString();
  if (!text.startsWith("/") || posix.normalize(text) === "/") throw invalid(`Invalid path: ${text}`);
  return posix.normalize(text).replace(/\/$/, "");
}

async function shell(box: Box, script: string, path: string): Promise<void> {
  const { exitCode, stderr } = await run(box, ["sh", "-c", script, "sh", path, `${hidden}${path}/it`]);
  if (exitCode !== 0) throw notFound(stderr.trim() || `${path} is not a directory, or nothing is mounted there.`);
}
