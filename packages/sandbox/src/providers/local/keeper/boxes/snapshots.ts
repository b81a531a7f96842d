import { newId, type SandboxId, SlipwayError, type SnapshotId, type SnapshotInfo } from "@slipway/contract";
import { throwIfAborted } from "../../../../abort.ts";
import { namesIn } from "../../../../state-files.ts";
import { inodesMappedForWriting, type LayerTool } from "../../launch/layer-tool.ts";
import type { Layout } from "../../layout.ts";
import {
  type LayerId,
  readRecords,
  removeRecord,
  type SnapshotRecord,
  snapshotInfo,
  writeRecord,
} from "../../record.ts";
import type { Clock } from "../clock.ts";
import type { EventLog } from "../events/log.ts";
import type { KeeperParams } from "../protocol.ts";
import type { Space } from "../watch/space.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Hold } from "./hold.ts";
import { type Layers, newLayerId } from "./layers.ts";

export interface Snapshots {
  create(wanted: KeeperParams<"snapshot">, signal?: AbortSignal): Promise<SnapshotInfo>;
  /** Takes a periodic snapshot and deletes old ones of the sandbox. */
  checkpoint(id: SandboxId): Promise<void>;
  find(id: SnapshotId): SnapshotRecord;
  update(change: KeeperParams<"updateSnapshot">): SnapshotInfo;
  delete(id: SnapshotId): void;
  /** The sandbox's current files as layers. The caller holds the sandbox's queue. */
  capture(box: Box): Promise<Capture>;
  usedLayers(): Iterable<LayerId>;
  deleteExpired(): void;
}

/** Layers of a sandbox's files, topmost first. Held from the garbage collector until disposed of. */
export interface Capture extends Disposable {
  readonly lowers: readonly LayerId[];
  readonly bytes: number;
}

export interface SnapshotParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly layers: Layers;
  readonly layerTool: LayerTool;
  readonly hold: Hold;
  readonly events: EventLog;
  readonly space: Pick<Space, "require">;
  readonly clock: Clock;
  collectGarbage(): void;
}

/** With more own layers a stopped sandbox's are merged. An overlay takes about 100. */
const maxOwnLayers = 24;
const checkpointsKept = 2;
const soonMs = 10 * 60_000;
const checkpointName = "checkpoint";

export function openSnapshots(parts: SnapshotParts): Snapshots {
  const { layout, boxes, events, clock } = parts;
  const records = new Map<SnapshotId, SnapshotRecord>();
  for (const record of readRecords<SnapshotRecord>(layout.records.snapshots)) records.set(record.id, record);

  const deleteExpired = () => {
    const users = new Set([...boxes.all()].map((box) => box.record.request.snapshot));
    for (const { id, expiresAt } of records.values()) {
      if (expiresAt !== null && expiresAt <= clock.now() && !users.has(id)) remove(id);
    }
  };
  const save = (record: SnapshotRecord) => {
    writeRecord(layout.snapshotRecord(record.id), record);
    records.set(record.id, record);
    expireInTime(record);
    return snapshotInfo(record);
  };
  /** A timer may fire early. Reconciling finds a distant end. */
  const expireInTime = ({ id, expiresAt }: SnapshotRecord) => {
    const leftMs = (expiresAt ?? Number.POSITIVE_INFINITY) - clock.now();
    if (leftMs > soonMs) return;
    clock.after(leftMs, () => {
      deleteExpired();
      const record = records.get(id);
      if (record?.expiresAt === expiresAt && leftMs > 0) expireInTime(record);
    });
  };
  for (const record of records.values()) expireInTime(record);
  const find = (id: SnapshotId): SnapshotRecord => {
    const record = records.get(id);
    if (record === undefined) throw new SlipwayError("snapshot_not_found", `No snapshot ${id}.`);
    return record;
  };
  const capture = (box: Box) => (box.record.process === null ? seal(parts, box) : copy(parts, box));

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
      using files = await capture(box);
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
        root: box.record.image,
        lowers: files.lowers,
        checkpoint,
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
    capture,
    *usedLayers() {
      for (const record of records.values()) yield* record.lowers;
    },
    deleteExpired,
  };
}

/** Makes a stopped sandbox's upper a layer by one rename. The record names it first: a restart repairs a crash. */
async function seal(parts: SnapshotParts, box: Box): Promise<Capture> {
  const { upper } = parts.layout.box(box.id);
  if (namesIn(upper).length === 0) return { lowers: box.record.lowers, bytes: 0, [Symbol.dispose]() {} };
  const layer = newLayerId();
  const lowers = [layer, ...box.record.lowers];
  parts.boxes.update(box, { lowers, incremental: null });
  parts.layers.adopt(layer, upper);
  const bytes = await parts.layerTool.measure(parts.layers.tree(layer));
  if (lowers.length - box.record.image.layers.length > maxOwnLayers) return flatten(parts, box, bytes);
  return { lowers, bytes, [Symbol.dispose]() {} };
}

async function flatten({ layers, layerTool, boxes }: SnapshotParts, box: Box, bytes: number): Promise<Capture> {
  const { lowers, image } = box.record;
  const own = lowers.slice(0, lowers.length - image.layers.length);
  using flat = await layers.add((directory) =>
    layerTool.flatten({ to: `${directory}/fs`, lowestFirst: own.toReversed().map((id) => layers.tree(id)) }),
  );
  boxes.update(box, { lowers: [flat.id, ...image.layers] });
  return { lowers: box.record.lowers, bytes, [Symbol.dispose]() {} };
}

/** Copies a live sandbox's upper while it is frozen, with hard links to what the last copy already has. */
async function copy({ layout, layers, layerTool, hold, boxes, space }: SnapshotParts, box: Box): Promise<Capture> {
  space.require();
  const { incremental, state, lowers } = box.record;
  const previous =
    incremental === null ? {} : { previous: layers.tree(incremental), previousManifest: layers.manifest(incremental) };
  const awake = state === "running";
  using holding = new DisposableStack();
  if (awake) await hold.freeze(box);
  let layer: LayerId;
  try {
    const changing = await inodesMappedForWriting(await hold.processes(box));
    const held = await layers.add((directory) =>
      layerTool.copy({
        from: layout.box(box.id).upper,
        to: `${directory}/fs`,
        manifest: `${directory}/manifest`,
        changing,
        ...previous,
      }),
    );
    layer = holding.use(held).id;
  } finally {
    if (awake) await hold.thaw(box);
  }
  boxes.update(box, { incremental: layer });
  const bytes = await layerTool.measure(layers.tree(layer));
  const held = holding.move();
  return { lowers: [layer, ...lowers], bytes, [Symbol.dispose]: () => held.dispose() };
}
