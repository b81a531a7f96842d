import { createHash } from "node:crypto";
import { chmod, lchown, mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { canAccess } from "../../../state-files.ts";
import { proxyEnvironment } from "../keeper/egress/environment.ts";
import type { HostMasks, Identity } from "./launch.ts";
import { caBundlePath, type SkeletonEntry, type SkeletonSources, skeletonEntries } from "./skeleton-entries.ts";

export interface MadeUpLayerOptions {
  /** The directory of all layers; the layer becomes `<layers>/<id>/fs`. */
  readonly layers: string;
  /** Its owner, when Slipway runs as root. */
  readonly identity: Identity | null;
}

/** The id of the `host` image's base layer. Builds it when the host's files have changed. */
export async function ensureSkeleton({
  layers,
  identity,
  ...sources
}: MadeUpLayerOptions & SkeletonSources): Promise<string> {
  return await ensureMadeUpLayer("host", await skeletonEntries(sources), { layers, identity });
}

/** A layer of made-up files. Its id is its name and a hash of its content. */
export async function ensureMadeUpLayer(
  name: string,
  entries: readonly SkeletonEntry[],
  { layers, identity }: MadeUpLayerOptions,
): Promise<string> {
  const id = `${name}-${hashOf(entries)}`;
  if (await canAccess(join(layers, id))) return id;
  const building = join(layers, `.${id}-${process.pid}-${performance.now()}`);
  await mkdir(building, { mode: 0o755 });
  // Owned from the start: what a crash leaves is removed with the sandboxes' rights.
  if (identity !== null) await lchown(building, identity.uid, identity.gid);
  await writeEntries(join(building, "fs"), entries, identity);
  await rename(building, join(layers, id)).catch(async (error: NodeJS.ErrnoException) => {
    await rm(building, { recursive: true, force: true });
    // Another process was faster.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
  return id;
}

/** Files of this host's /usr and /proc that a sandbox must not see. */
export async function hostMasks(): Promise<HostMasks> {
  const present = async (paths: readonly string[]) => {
    const found = await Promise.all(paths.map(async (path) => ((await canAccess(path)) ? [path] : [])));
    return found.flat();
  };
  return {
    usrEtc: await canAccess("/usr/etc"),
    // Site-wide settings of pip and npm may hold credentials.
    emptied: await present(["/usr/pip.conf", "/usr/lib/node_modules/npm/npmrc", "/usr/share/nodejs/npm/npmrc"]),
    // Lists the keys of Slipway's session.
    closed: await present(["/proc/keys"]),
  };
}

/** Where the agent forwards the egress, on the sandbox's loopback. */
const egressPort = 3128;

/** The environment of every command; requests add to it. */
export function baseEnvironment(user: "agent" | "root"): Record<string, string> {
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: user === "root" ? "/root" : "/home/agent",
    USER: user,
    LOGNAME: user,
    SHELL: "/bin/bash",
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    NPM_CONFIG_GLOBALCONFIG: "/etc/npmrc",
    ...proxyEnvironment({ port: egressPort, caBundlePath }),
  };
}

function hashOf(entries: readonly SkeletonEntry[]): string {
  const hash = createHash("sha256");
  for (const entry of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${entry.type} ${entry.path}\0${entry.type === "symlink" ? entry.target : entry.mode}\0`);
    if (entry.type === "file") hash.update(`${entry.content.length}\0`).update(entry.content);
  }
  return hash.digest("hex").slice(0, 16);
}

async function writeEntries(
  directory: string,
  entries: readonly SkeletonEntry[],
  identity: Identity | null,
): Promise<void> {
  const own = async (path: string) => {
    if (identity !== null) await lchown(path, identity.uid, identity.gid);
  };
  await mkdir(directory, { mode: 0o755 });
  await own(directory);
  for (const entry of entries) {
    const path = join(directory, entry.path);
    if (entry.type === "directory") await mkdir(path, { recursive: true });
    else if (entry.type === "file") await writeFile(path, entry.content);
    else await symlink(entry.target, path);
    await own(path);
    if (entry.type !== "symlink") await chmod(path, entry.mode);
  }
}
