import { join } from "node:path";
import type { SandboxId, SnapshotId } from "@slipway/contract";

/** What every keeper has in its directory. Only the keeper writes records and events; callers read the records. */
export type KeeperLayout = ReturnType<typeof keeperLayout>;

export function keeperLayout(root: string) {
  const records = join(root, "records");
  const sandboxes = join(records, "sandboxes");
  const snapshots = join(records, "snapshots");
  return {
    root,
    keeperSocket: join(root, "keeper.sock"),
    keeperLog: join(root, "keeper.log"),
    /** Held by the keeper's process. */
    keeperLock: join(root, "keeper.lock"),
    /** Node's cache of the keeper's compiled sources. */
    compileCache: join(root, "compile-cache"),
    events: join(root, "events.jsonl"),
    records: { sandboxes, snapshots, images: join(records, "images") },
    /** Trees of tools by their digest. */
    tools: join(root, "tools"),
    sandboxRecord: (id: SandboxId) => join(sandboxes, `${id}.json`),
    snapshotRecord: (id: SnapshotId) => join(snapshots, `${id}.json`),
  };
}
