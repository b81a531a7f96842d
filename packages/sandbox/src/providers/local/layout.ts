import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { type SandboxId, SlipwayError } from "@slipway/contract";
import { keeperLayout } from "../../keeper/layout.ts";

/**
 * The state directory. As root, `layers`, `boxes` and `spares` belong to the sandboxes' uid, because the overlay is
 * mounted with its rights; it may read `tools`; everything else belongs to root and is closed to that uid.
 */
export type Layout = ReturnType<typeof layoutOf>;

export function layoutOf(root: string) {
  const boxes = join(root, "boxes");
  return {
    ...keeperLayout(root),
    /** The agent, the launcher and the seccomp filters: copies that the sandboxes' uid can reach. */
    bin: join(root, "bin"),
    /** Launches connect to the keeper here. */
    launchSocket: join(root, "launch.sock"),
    /** A file for each port that a preview has had. */
    previewPorts: join(root, "preview-ports"),
    /** Read-only file trees: `layers/<layer id>/fs`. */
    layers: join(root, "layers"),
    /** Mount point of every sandbox's overlay, each in its own mount namespace. */
    mountPoint: join(root, "mnt"),
    boxes,
    /** Boxes made ahead of their sandboxes. */
    spares: join(root, "spares"),
    box: (id: SandboxId) => boxLayout(join(boxes, id)),
  };
}

/** A sandbox's host directory. Nothing inside the sandbox reaches it, except `egress`. */
export type BoxLayout = ReturnType<typeof boxLayout>;

function boxLayout(root: string) {
  const egress = join(root, "egress");
  return {
    root,
    agentSocket: join(root, "agent.sock"),
    upper: join(root, "upper"),
    execs: join(root, "execs"),
    /** Bound read-only into the sandbox at /run/slipway; holds the two sockets below. */
    egress,
    egressSocket: join(egress, "egress.sock"),
    channelSocket: join(egress, "run.sock"),
    /** Held by whoever listens on the channel, and not where the sandbox sees it. */
    channelLock: join(root, "channel.lock"),
  };
}

/** The sockets of a longer state directory do not fit into sun_path; a sandbox's id has 24 characters. */
export const maxStateDirLength = 107 - "/boxes//egress/egress.sock".length - 24;

/** What sandboxes leave free of the state directory's disk. */
export const defaultMinFreeMb = 1024;

/** Creates what is missing. As root, gives `sandboxUid` the directories that are its own. */
export function prepareStateDirectory(layout: Layout, sandboxUid: number): void {
  if (!isAbsolute(layout.root) || layout.root.length > maxStateDirLength) {
    throw new SlipwayError(
      "invalid_settings",
      `The state directory must be an absolute path of at most ${maxStateDirLength} characters: ${layout.root}`,
    );
  }
  const isRoot = process.getuid?.() === 0;
  if (isRoot) requirePassable(layout.root, sandboxUid);
  try {
    ensure(layout.root, isRoot ? 0o711 : 0o700);
    ensure(layout.bin, 0o755);
    ensure(layout.mountPoint, 0o755);
    ensure(layout.tools, isRoot ? 0o711 : 0o700);
    for (const directory of Object.values(layout.records)) ensure(directory, 0o700);
    for (const directory of [layout.layers, layout.boxes, layout.spares]) {
      if (ensure(directory, 0o700) && isRoot) chownSync(directory, sandboxUid, sandboxUid);
    }
  } catch (cause) {
    const message = `Cannot use the state directory ${layout.root}: ${(cause as Error).message}`;
    throw new SlipwayError("invalid_settings", message, { cause });
  }
}

/** The sandboxes' uid starts programs and mounts layers below the state directory, so every parent must let it pass. */
function requirePassable(root: string, uid: number): void {
  for (let path = root; ; path = dirname(path)) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined && (stat.mode & 0o001) === 0 && !(stat.uid === uid && stat.mode & 0o100)) {
      const advice = "Choose another state directory, or allow it with `chmod o+x`.";
      throw new SlipwayError("invalid_settings", `The sandboxes' uid ${uid} cannot pass through ${path}. ${advice}`);
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
