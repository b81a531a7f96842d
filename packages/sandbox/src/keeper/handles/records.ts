import { type SandboxId, SlipwayError, type SnapshotId, sandboxIdSchema, snapshotIdSchema } from "@slipway/contract";
import type { KeeperClient } from "../client/client.ts";
import type { KeeperLayout } from "../layout.ts";
import {
  liveStates,
  readRecord,
  readRecords,
  type SandboxRecord,
  type SnapshotRecord,
  sandboxNotFound,
} from "../record.ts";

/** The keeper's records, read without it. */
export interface Records<R extends SandboxRecord> {
  read(id: SandboxId): Promise<R>;
  /** The record once a keeper has checked it: without a keeper, what is recorded as live may have ended. */
  settled(id: SandboxId): Promise<R>;
  exists(id: SandboxId): Promise<boolean>;
  /** All of them, settled. */
  list(): Promise<R[]>;
  snapshots(): SnapshotRecord[];
  snapshot(id: SnapshotId): Promise<SnapshotRecord>;
}

export function createRecords<R extends SandboxRecord>(
  layout: KeeperLayout,
  keeper: Pick<KeeperClient, "connect">,
): Records<R> {
  const read = async (id: SandboxId): Promise<R> => {
    const isId = sandboxIdSchema.safeParse(id).success;
    const record = isId ? await readRecord<R>(layout.sandboxRecord(id)) : null;
    if (record === null) throw sandboxNotFound(id);
    return record;
  };
  const all = () => readRecords<R>(layout.records.sandboxes);
  const isLive = ({ state }: R) => liveStates.includes(state);
  return {
    read,
    async settled(id) {
      const record = await read(id);
      if (!isLive(record)) return record;
      await keeper.connect();
      return await read(id);
    },
    exists: async (id) => (await readRecord(layout.sandboxRecord(id))) !== null,
    async list() {
      if (all().some(isLive)) await keeper.connect();
      return all();
    },
    snapshots: () => readRecords<SnapshotRecord>(layout.records.snapshots),
    async snapshot(id) {
      const isId = snapshotIdSchema.safeParse(id).success;
      const record = isId ? await readRecord<SnapshotRecord>(layout.snapshotRecord(id)) : null;
      if (record === null) throw new SlipwayError("snapshot_not_found", `No snapshot ${id}.`);
      return record;
    },
  };
}
