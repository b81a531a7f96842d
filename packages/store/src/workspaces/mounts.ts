import { type CreateSandboxInput, type DestroyReceipt, type SandboxInfo, SlipwayError } from "@slipway/contract";
import type { CallOptions, OwnedSandbox, Sandbox, SandboxProvider } from "@slipway/sandbox";
import { type Place, parsePlace, placeText } from "./places.ts";
import type { SyncResult } from "./sync.ts";
import type { Workspaces } from "./workspaces.ts";

/** A place of the storage at a directory of a sandbox. */
export interface Mount {
  readonly place: Place;
  readonly directory: string;
  /** What the sandbox starts with: by default the newest. */
  readonly version?: string | undefined;
}

/** A sandbox's labels say what it was started from, for whoever syncs it later. */
const labelPrefix = "storage:";
const maxLabelLength = 128;

/** Shared files are copies that nobody takes back: their modes say so, and no sync touches their place. */
const isShared = ({ place }: Mount) => place.kind === "shared";

/** Creates a sandbox with files of the storage. A failure leaves no sandbox. */
export async function createWithStorage(
  provider: Pick<SandboxProvider, "create">,
  workspaces: Workspaces,
  request: CreateSandboxInput & { readonly mounts: readonly Mount[] },
  options: CallOptions = {},
): Promise<OwnedSandbox> {
  const { mounts, ...rest } = request;
  if (mounts.length === 0) return await provider.create(rest, options);
  checkMounts(mounts, rest);
  // Before there is a sandbox: a wrong setting costs nothing.
  const sources = await Promise.all(mounts.map(async (mount) => ({ mount, source: await workspaces.at(mount.place) })));
  const sandbox = await provider.create({ ...rest, labels: { ...rest.labels, ...labelsOf(mounts) } }, options);
  try {
    for (const { mount, source } of sources) {
      const { directory, version } = mount;
      await source.hydrate(sandbox, directory, { ...options, version, readOnly: isShared(mount) });
    }
    return sandbox;
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

function checkMounts(mounts: readonly Mount[], request: CreateSandboxInput): void {
  // The second call would get the first one's sandbox, and overwrite what was done in it.
  if (request.idempotencyKey !== undefined) {
    throw new SlipwayError("invalid_request", "idempotencyKey: not together with files of the storage.");
  }
  for (const { directory } of mounts) {
    const twins = mounts.filter((other) => isWithin(other.directory, directory));
    if (twins.length > 1)
      throw new SlipwayError("invalid_request", `${directory}: two places of the storage overlap here.`);
    if (!directory.startsWith("/") || labelPrefix.length + directory.length > maxLabelLength) {
      throw new SlipwayError("invalid_request", `${directory}: expected an absolute path of at most 120 characters.`);
    }
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`);
}

function labelsOf(mounts: readonly Mount[]): Record<string, string> {
  return Object.fromEntries(mounts.map(({ directory, place }) => [labelPrefix + directory, placeText(place)]));
}

export function mountsOf({ labels }: Pick<SandboxInfo, "labels">): Mount[] {
  return Object.entries(labels)
    .filter(([key]) => key.startsWith(`${labelPrefix}/`))
    .map(([key, text]) => ({ directory: key.slice(labelPrefix.length), place: parsePlace(text) }));
}

export interface SyncedMount extends SyncResult {
  readonly place: string;
  readonly directory: string;
}

/** Makes a version of everything that the sandbox has of the storage, but for shared files. */
export async function syncMounts(
  sandbox: Sandbox,
  workspaces: Workspaces,
  options: CallOptions = {},
): Promise<SyncedMount[]> {
  const mounts = mountsOf(await sandbox.info(options)).filter((mount) => !isShared(mount));
  const synced: SyncedMount[] = [];
  for (const { place, directory } of mounts) {
    const workspace = await workspaces.at(place);
    const result = await workspace.sync(sandbox, directory, options);
    synced.push({ place: placeText(place), directory, ...result });
  }
  return synced;
}

/** Syncs, then destroys. A sync that fails leaves the sandbox as it is. */
export async function syncAndDestroy(
  sandbox: Sandbox,
  workspaces: Workspaces,
  options: CallOptions = {},
): Promise<{ synced: SyncedMount[]; receipt: DestroyReceipt }> {
  const synced = await syncMounts(sandbox, workspaces, options);
  return { synced, receipt: await sandbox.destroy(options) };
}
