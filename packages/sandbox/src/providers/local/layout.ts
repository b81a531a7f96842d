import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { type SandboxId, SlipwayError, type SnapshotId } from "@slipway/contract";

/**
 * The state directory. As root, everything but `layers`, `boxes` and `spares` belongs to root and is closed to the sandboxes'
 * uid; those belong to that uid, because the overlay is mounted with its rights.
 */
export interface Layout {
  readonly root: string;
  /** The agent, the launcher and the seccomp filters: copied here, where the sandboxes' uid can reach them. */
  readonly bin: string;
  readonly keeperSocket: string;
  readonly keeperLog: string;
  /** Whose process may be the keeper. */
  readonly keeperLock: string;
  /** Where launches connect to the keeper. */
  readonly launchSocket: string;
  /** Of the keeper's sources. */
  readonly compileCache: string;
  readonly events: string;
  /** A file for each port that a preview has had. */
  readonly previewPorts: string;
  readonly records: { readonly sandboxes: string; readonly snapshots: string; readonly images: string };
  /** Read-only file trees: `layers/<layer id>/fs`. */
  readonly layers: string;
  /** Mount point of every sandbox's overlay, each in its own mount namespace. */
  readonly mountPoint: string;
  /** Trees of tools by their digest. Not the sandboxes' uid's, which may read them. */
  readonly tools: string;
  readonly boxes: string;
  /** Boxes that are made ahead of their sandboxes. */
  readonly spares: string;
  box(id: SandboxId): BoxLayout;
  sandboxRecord(id: SandboxId): string;
  snapshotRecord(id: SnapshotId): string;
}

/** One sandbox's host directory. Nothing inside the sandbox reaches it, but for `egress`. */
export interface BoxLayout {
  readonly root: string;
  readonly agentSocket: string;
  readonly upper: string;
  readonly work: string;
  readonly execs: string;
  /** Bound read-only into the sandbox at /run/slipway; holds the two sockets below. */
  readonly egress: string;
  readonly egressSocket: string;
  readonly channelSocket: string;
  /** Who listens on the channel. Not where the sandbox sees it. */
  readonly channelLock: string;
}

/** Longest state directory whose sockets still fit into sun_path; a sandbox's id has 24 characters. */
export const maxStateDirLength = 107 - "/boxes//egress/egress.sock".length - 24;

/** What sandboxes leave free of the disk that the state directory is on. */
export const defaultMinFreeMb = 1024;

export function layoutOf(root: string): Layout {
  const records = join(root, "records");
  const sandboxes = join(records, "sandboxes");
  const snapshots = join(records, "snapshots");
  const boxes = join(root, "boxes");
  return {
    root,
    bin: join(root, "bin"),
    keeperSocket: join(root, "keeper.sock"),
    keeperLog: join(root, "keeper.log"),
    keeperLock: join(root, "keeper.lock"),
    launchSocket: join(root, "launch.sock"),
    compileCache: join(root, "compile-cache"),
    events: join(root, "events.jsonl"),
    previewPorts: join(root, "preview-ports"),
    records: { sandboxes, snapshots, images: join(records, "images") },
    layers: join(root, "layers"),
    mountPoint: join(root, "mnt"),
    tools: join(root, "tools"),
    boxes,
    spares: join(root, "spares"),
    box: (id) => boxLayout(join(boxes, id)),
    sandboxRecord: (id) => join(sandboxes, `${id}.json`),
    snapshotRecord: (id) => join(snapshots, `${id}.json`),
  };
}

function boxLayout(root: string): BoxLayout {
  const egress = join(root, "egress");
  return {
    root,
    agentSocket: join(root, "agent.sock"),
    upper: join(root, "upper"),
    work: join(root, "work"),
    execs: join(root, "execs"),
    egress,
    egressSocket: join(egress, "egress.sock"),
    channelSocket: join(egress, "run.sock"),
    channelLock: join(root, "channel.lock"),
  };
}

/** Makes what is missing of the state directory. As root, `sandboxUid` gets the two directories that are its own. */
export function prepareStateDirectory(layout: Layout, sandboxUid: number): void {
  if (!isAbsolute(layout.root) || layout.root.length > maxStateDirLength) {
    throw new SlipwayError(
      "invalid_settings",
      `the state directory must be an absolute path of at most ${maxStateDirLength} characters: ${layout.root}`,
    );
  }
  const isRoot = process.getuid?.() === 0;
  if (isRoot) requirePassable(layout.root, sandboxUid);
  try {
    ensure(layout.root, isRoot ? 0o711 : 0o700);
    ensure(layout.bin, 0o755);
    ensure(layout.mountPoint, 0o755);
    ensure(layout.tools, isRoot ? 0o711 : 0o700);
    for (const directory of [layout.records.sandboxes, layout.records.snapshots, layout.records.images])
      ensure(directory, 0o700);
    for (const directory of [layout.layers, layout.boxes, layout.spares]) {
      if (ensure(directory, 0o700) && isRoot) chownSync(directory, sandboxUid, sandboxUid);
    }
  } catch (error) {
    throw new SlipwayError(
      "invalid_settings",
      `can not use the state directory ${layout.root}: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/** The sandboxes' uid starts programs and mounts layers below the state directory: every directory on the way must let it pass. */
function requirePassable(root: string, uid: number): void {
  for (let path = root; ; path = dirname(path)) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined && (stat.mode & 0o001) === 0 && !(stat.uid === uid && stat.mode & 0o100)) {
      const advice = "choose a state directory elsewhere, or allow it by `chmod o+x`";
      throw new SlipwayError("invalid_settings", `the sandboxes' uid ${uid} can not pass through ${path}; ${advice}`);
    }
    if (path === dirname(path)) return;
  }
}

/** True when it made the directory. */
function ensure(path: string, mode: number): boolean {
  if (mkdirSync(path, { recursive: true, mode }) === undefined) return false;
  chmodSync(path, mode);
  return true;
}
