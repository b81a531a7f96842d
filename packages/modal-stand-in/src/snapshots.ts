import type { CallContext } from "nice-grpc";
import type { Images } from "./images/images.ts";
import type { RouterAccess } from "./router.ts";
import { localPolicy } from "./sandboxes/network.ts";
import type { Sandbox } from "./sandboxes/sandbox.ts";
import { validateNetwork } from "./sandboxes/validate.ts";
import type { Methods } from "./serve.ts";
import type { NetworkAccess, TaskRequest } from "./wire.ts";

interface SnapshotRequest extends TaskRequest {
  /** Chosen by the client: the same one answers with the same image. */
  readonly snapshotId: string;
  readonly ttlSeconds: number;
}

/** Images of a sandbox's files, and what else a client changes in a running sandbox. */
export function snapshotMethods(images: Images, { running }: RouterAccess): Methods {
  const takeOnce = once();
  return {
    taskSnapshotFilesystem(request: SnapshotRequest, context: CallContext) {
      const sandbox = running(request, context);
      return takeOnce(request.snapshotId, () => ofFiles(images, sandbox, request.ttlSeconds));
    },
    async taskReloadVolumes(request: TaskRequest, context: CallContext) {
      await running(request, context).volumes.reload();
      return {};
    },
    async taskSetNetworkAccess(request: TaskRequest & { networkAccess: NetworkAccess }, context: CallContext) {
      const sandbox = running(request, context);
      validateNetwork(request.networkAccess);
      await sandbox.box.setNetwork(localPolicy(request.networkAccess));
      sandbox.network = request.networkAccess;
      return {};
    },
  };
}

async function ofFiles(images: Images, { box, definition }: Sandbox, ttlSeconds: number): Promise<string> {
  const image = images.get(definition.imageId);
  return images.add({ ...image, snapshot: (await box.snapshot()).id }, ttlSeconds);
}

/** A snapshot that is asked for again, by its id, is the one that was taken. */
export function once(): (id: string, take: () => Promise<string>) => Promise<{ imageId: string }> {
  const taken = new Map<string, Promise<string>>();
  return async (id, take) => {
    const image = taken.get(id) ?? take();
    taken.set(id, image);
    image.catch(() => taken.delete(id));
    return { imageId: await image };
  };
}
