import { newId, type SandboxId, SlipwayError, type SnapshotId, type SnapshotInfo } from "@slipway/contract";
import { throwIfAborted } from "../../abort.ts";
import type { Clock } from "../clock.ts";
import type { EventLog } from "../events/log.ts";
import type { KeeperLayout } from "../layout.ts";
import type { KeeperParams } from "../protocol.ts";
import {
  readRecords,
  removeRecord,
  type SandboxRecord,
  type SnapshotRecord,
  snapshotInfo,
  writeRecord,
} from "../record.ts";
import type { Capture } from "../runtime.ts";
import type { Box, Boxes } from "./boxes.ts";

export interface Snapshots<O> {
  create(wanted: KeeperParams<"snapshot">, signal?: AbortSignal): Promise<SnapshotInfo>;
  /** Takes a periodic snapshot and deletes old ones of the sandbox. */
  checkpoint(id: SandboxId): Promise<void>;
  all(): Iterable<SnapshotRecord<O>>;
  find(id: SnapshotId): SnapshotRecord<O>;
  update(change: KeeperParams<"updateSnapshot">): SnapshotInfo;
  delete(id: SnapshotId): void;
  deleteExpired(): void;
}

export interface SnapshotParts<R extends SandboxRecord, O> {
  readonly layout: KeeperLayout;
  readonly boxes: Boxes<R>;
  readonly events: EventLog;
  readonly clock: Clock;
  /** The sandbox's present files. The caller holds the sandbox's queue. */
  capture(box: Box<R>, signal?: AbortSignal): Promise<Capture<O>>;
  collectGarbage(): void;
}

const checkpointsKept = 2;
const soonMs = 10 * 60_000;
const checkpointName = "checkpoint";

export function openSnapshots<R extends SandboxRecord, O>(parts: SnapshotParts<R, O>): Snapshots<O> {
  const { layout, boxes, events, clock } = parts;
  const records = new Map<SnapshotId, SnapshotRecord<O>>();
  for (const record of readRecords<SnapshotRecord<O>>(layout.records.snapshots)) records.set(record.id, record);

  const deleteExpired = () => {
    const users = new Set([...boxes.all()].map((box) => box.record.request.snapshot));
    for (const { id, expiresAt } of records.values()) {
      if (expiresAt !== null && expiresAt <= clock.now() && !users.has(id)) remove(id);
    }
  };
  const save = (record: SnapshotRecord<O>) => {
    writeRecord(layout.snapshotRecord(record.id), record);
    records.set(record.id, record);
    expireInTime(record);
    return snapshotInfo(record);
  };
  /** A timer may fire early. Reconciling finds a distant end. */
  const expireInTime = ({ id, expiresAt }: SnapshotRecord<O>) => {
    const leftMs = (expiresAt ?? Number.POSITIVE_INFINITY) - clock.now();
    if (leftMs > soonMs) return;
    clock.after(leftMs, () => {
      deleteExpired();
      const record = records.get(id);
      if (record?.expiresAt === expiresAt && leftMs > 0) expireInTime(record);
    });
  };
  for (const record of records.values()) expireInTime(record);
  const find = (id: SnapshotId): SnapshotRecord<O> => {
    const record = records.get(id);
    if (record === undefined) throw new SlipwayError("snapshot_not_found", `No snapshot ${id}.`);
    return record;
  };

  const create = async (
    { id, snapshot, name, expiresInMs }: KeeperParams<"snapshot">,
    checkpoint: boolean,
    signal?: AbortSignal,
  ): Promise<SnapshotInfo> => {
    const existing = records.get(snapshot);
    if (existing !== undefined) return snapshotInfo(existing);
    const box = boxes.get(id);
    return await boxes.exclusive(box, async () => {
      throwIfAborted(signal);
      using files = await parts.capture(box, signal);
      throwIfAborted(signal);
      const now = clock.now();
      const info = save({
        id: snapshot,
        name,
        sandbox: id,
        image: box.record.request.image,
        createdAt: now,
        expiresAt: expiresInMs === null ? null : now + expiresInMs,
        bytes: files.bytes,
        checkpoint,
        ...files.origin,
      });
      events.append({ type: "snapshot.created", sandbox: id, snapshot, checkpoint });
      return info;
    });
  };
  const remove = (id: SnapshotId) => {
    removeRecord(layout.snapshotRecord(id));
    records.delete(id);
    parts.collectGarbage();
  };

  return {
    create: (wanted, signal) => create(wanted, false, signal),
    async checkpoint(id) {
      try {
        const snapshot = newId("snp", clock.now());
        await create({ id, snapshot, name: checkpointName, expiresInMs: null }, true);
      } catch (error) {
        events.append({ type: "snapshot.failed", sandbox: id, message: (error as Error).message });
        return;
      }
      const own = [...records.values()].filter(({ sandbox, checkpoint }) => sandbox === id && checkpoint);
      for (const old of own.slice(0, -checkpointsKept)) remove(old.id);
    },
    all: () => records.values(),
    find,
    update({ id, name, expiresInMs }) {
      const record = find(id);
      const expiresAt =
        expiresInMs === undefined ? record.expiresAt : expiresInMs === null ? null : clock.now() + expiresInMs;
      return save({ ...record, name: name === undefined ? record.name : name, expiresAt });
    },
    delete(id) {
      find(id);
      const users = [...boxes.all()].filter((box) => box.record.request.snapshot === id).map((box) => box.id);
      if (users.length > 0) throw new SlipwayError("snapshot_in_use", `${users.join(", ")} started from ${id}.`);
      remove(id);
    },
    deleteExpired,
  };
}
