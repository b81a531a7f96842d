import { isDeepStrictEqual } from "node:util";
import {
  type CreateSandbox,
  type SandboxId,
  SlipwayError,
  type SnapshotId,
  type SnapshotInfo,
} from "@slipway/contract";
import { Box, type BoxHost } from "./box.ts";
import type { Clock } from "./clock.ts";
import { EventLog } from "./event-log.ts";
import { FaultQueue, type Operation } from "./faults.ts";
import type { Ids } from "./ids.ts";
import type { SimulatedProgram } from "./program.ts";
import { FileTree } from "./tree.ts";

/** A program by the first argument, or none: then the command can not be started. */
export type ProgramFinder = (argv: readonly string[]) => SimulatedProgram | undefined;

export interface WorldSettings {
  readonly name: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly find: ProgramFinder;
  readonly latenciesMs: Readonly<Partial<Record<Operation, number>>>;
  readonly maxSandboxes: number;
  readonly keptEvents: number;
}

interface Snapshot {
  info: SnapshotInfo;
  readonly tree: FileTree;
  cancelExpiry: (() => void) | null;
}

/** What all coordinators of a simulation share: the sandboxes, the snapshots, what happened and what is to go wrong. */
export class World implements BoxHost {
  readonly settings: WorldSettings;
  readonly boxes = new Map<SandboxId, Box>();
  readonly snapshots = new Map<SnapshotId, Snapshot>();
  readonly events: EventLog;
  readonly faults = new FaultQueue();
  readonly #keys = new Map<string, { readonly request: CreateSandbox; readonly box: Box }>();
  readonly #base = baseTree();

  constructor(settings: WorldSettings) {
    this.settings = settings;
    this.events = new EventLog(settings.keptEvents);
  }

  get clock(): Clock {
    return this.settings.clock;
  }

  get providerName(): string {
    return this.settings.name;
  }

  box(id: SandboxId): Box {
    const box = this.boxes.get(id);
    if (box === undefined) throw new SlipwayError("sandbox_not_found", `There is no sandbox ${id}.`);
    return box;
  }

  /** A sandbox on the snapshot's files, or on the image's. A key that was used answers with its sandbox. */
  create(request: CreateSandbox): Box {
    const { idempotencyKey: key } = request;
    const earlier = key === undefined ? undefined : this.#keys.get(key);
    if (earlier !== undefined) {
      if (isDeepStrictEqual(earlier.request, request)) return earlier.box;
      throw new SlipwayError("idempotency_conflict", `The key ${key} was used for another request.`);
    }
    const source = request.snapshot === undefined ? this.#base : this.snapshot(request.snapshot).tree;
    return this.createOn(source, request);
  }

  createOn(source: FileTree, request: CreateSandbox): Box {
    const { ids, maxSandboxes } = this.settings;
    if (this.boxes.size >= maxSandboxes) {
      throw new SlipwayError("provider_unavailable", `All ${maxSandboxes} sandboxes of the provider are taken.`);
    }
    const box = new Box(ids("sbx", this.clock.now()), request, source.fork(), this);
    const workdir = box.tree.locate(request.workdir, true);
    if (workdir.node === undefined) box.tree.makeDirectory(workdir.names, 0o755, this.clock.now());
    this.boxes.set(box.id, box);
    if (request.idempotencyKey !== undefined) this.#keys.set(request.idempotencyKey, { request, box });
    return box;
  }

  forget(box: Box): void {
    this.boxes.delete(box.id);
    const { idempotencyKey: key } = box.request;
    if (key !== undefined && this.#keys.get(key)?.box === box) this.#keys.delete(key);
  }

  emit(...[box, body]: Parameters<BoxHost["emit"]>): void {
    this.events.add((sequence) => ({ sequence, at: this.clock.now(), sandbox: box.id, ...body }));
  }

  checkpoint(box: Box): void {
    this.capture(box, { checkpoint: true });
  }

  capture(
    box: Box,
    options: { name?: string | undefined; expiresInMs?: number | undefined; checkpoint: boolean },
  ): SnapshotInfo {
    const now = this.clock.now();
    const info: SnapshotInfo = {
      id: this.settings.ids("snp", now),
      name: options.name ?? null,
      sandbox: box.id,
      image: box.request.image,
      createdAt: now,
      expiresAt: options.expiresInMs === undefined ? null : now + options.expiresInMs,
      bytes: box.tree.bytesSinceFork,
    };
    const snapshot = { info, tree: box.tree.fork(), cancelExpiry: null };
    this.snapshots.set(info.id, snapshot);
    this.#expire(snapshot);
    box.emit({ type: "snapshot.created", snapshot: info.id, checkpoint: options.checkpoint });
    return info;
  }

  snapshot(id: SnapshotId): Snapshot {
    const snapshot = this.snapshots.get(id);
    if (snapshot === undefined) throw new SlipwayError("snapshot_not_found", `There is no snapshot ${id}.`);
    return snapshot;
  }

  updateSnapshot(id: SnapshotId, change: { name?: string | null; expiresInMs?: number | null }): SnapshotInfo {
    const snapshot = this.snapshot(id);
    const { name, expiresInMs } = change;
    const expiresAt = expiresInMs === null ? null : this.clock.now() + (expiresInMs ?? 0);
    snapshot.info = {
      ...snapshot.info,
      ...(name === undefined ? {} : { name }),
      ...(expiresInMs === undefined ? {} : { expiresAt }),
    };
    this.#expire(snapshot);
    return snapshot.info;
  }

  deleteSnapshot(id: SnapshotId): void {
    const snapshot = this.snapshot(id);
    const users = this.#usersOf(id);
    if (users.length > 0) throw new SlipwayError("snapshot_in_use", `${id} is what ${users.join(", ")} started from.`);
    snapshot.cancelExpiry?.();
    this.snapshots.delete(id);
  }

  #usersOf(id: SnapshotId): SandboxId[] {
    return [...this.boxes.values()].filter(({ request }) => request.snapshot === id).map((box) => box.id);
  }

  /** One that is in use at its time is looked at again later. */
  #expire(snapshot: Snapshot): void {
    snapshot.cancelExpiry?.();
    const { id, expiresAt } = snapshot.info;
    if (expiresAt === null) return;
    const look = () => {
      if (this.#usersOf(id).length > 0) snapshot.cancelExpiry = this.clock.after(60_000, look);
      else this.snapshots.delete(id);
    };
    snapshot.cancelExpiry = this.clock.after(expiresAt - this.clock.now(), look);
  }
}

/** The one image: what programs expect to find in a root directory. */
function baseTree(): FileTree {
  const tree = FileTree.empty();
  for (const path of ["workspace", "tmp", "home/agent", "usr/bin", "etc", "proc", "sys", "dev"]) {
    tree.makeDirectory(path.split("/"), 0o755, 0);
  }
  const passwd = Buffer.from("root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n");
  tree.put(["etc", "passwd"], { type: "file", data: passwd, mode: 0o644, modifiedAt: 0 }, 0);
  return tree;
}
