import { posix } from "node:path";
import type { Sandbox } from "@slipway/sandbox";
import { type Mount, mountsOf, parsePlace, placeText, type SyncedMount, syncMounts } from "@slipway/store/workspaces";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { sandboxOf } from "../../input/resolve.ts";
import { formatBytes } from "../../terminal/terminal.ts";

export async function run(context: Context): Promise<void> {
  const { args } = context;
  if (args.text("directory") !== undefined && args.text("place") === undefined) {
    throw new UsageError("--directory needs --place.");
  }
  const sandbox = await sandboxOf(context);
  context.progress.status(`syncing ${sandbox.id}`);
  const place = args.text("place");
  const synced = place === undefined ? await syncAll(context, sandbox) : [await syncTo(context, sandbox, place)];
  context.progress.clear();
  if (place !== undefined) await tell(context, synced);
  await context.result(synced, synced.map(({ version }) => `${version}\n`).join(""));
}

/** Every place that the sandbox was started from. */
export async function syncAll(context: Context, sandbox: Sandbox): Promise<SyncedMount[]> {
  const { signal } = context.interrupts;
  const synced = await syncMounts(sandbox, await context.storage(), { signal });
  if (synced.length === 0) {
    throw new UsageError(
      `${sandbox.id} has no files of the storage that could be synced.`,
      "Create it with --workspace or --volume, or say where to: slipway storage sync <id> --place <place>",
    );
  }
  await tell(context, synced);
  return synced;
}

async function syncTo(context: Context, sandbox: Sandbox, text: string): Promise<SyncedMount> {
  const { signal } = context.interrupts;
  const place = parsePlace(text);
  if (place.kind === "shared") {
    throw new UsageError(
      "No sandbox writes to the shared files.",
      "Publish a local directory: slipway storage put <directory> shared",
    );
  }
  const { workdir } = await sandbox.info({ signal });
  const directory = posix.resolve(workdir, context.args.text("directory") ?? ".");
  const workspace = await (await context.storage()).at(place);
  return { place: placeText(place), directory, ...(await workspace.sync(sandbox, directory, { signal })) };
}

async function tell(context: Context, synced: readonly SyncedMount[]): Promise<void> {
  for (const { place, directory, isNew, version, uploadedFiles, uploadedBytes, leftOut } of synced) {
    const changed = `${uploadedFiles} changed ${uploadedFiles === 1 ? "file" : "files"}, ${formatBytes(uploadedBytes)}`;
    await context.note(
      isNew
        ? `${directory} is ${place} ${version}: ${changed}`
        : `${directory} has not changed since ${place} ${version}`,
    );
    for (const path of leftOut) await context.note(`skipped ${path}: neither a file, a directory nor a link`);
  }
}

export async function restore(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const sandbox = await sandboxOf(context);
  const { place, directory } = chosen(mountsOf(await sandbox.info({ signal })), context.args.text("directory"));
  const workspace = await (await context.storage()).at(place);
  context.progress.status(`restoring ${directory}`);
  const restored = await workspace.restore(sandbox, directory, { signal, version: context.args.text("version") });
  context.progress.clear();
  await context.result({ directory, place: placeText(place), ...restored }, "");
  const counts = `${restored.entries} replaced, ${restored.removed} removed`;
  await context.note(`${directory} is ${placeText(place)} ${restored.version ?? ""}: ${counts}`);
}

function chosen(mounts: readonly Mount[], directory: string | undefined): Mount {
  const [first, ...others] = directory === undefined ? mounts : mounts.filter((mount) => mount.directory === directory);
  if (first === undefined) {
    throw new UsageError(
      directory === undefined ? "The sandbox has no files of the storage." : `${directory} is not from the storage.`,
      "See the labels of `slipway sandbox info`.",
    );
  }
  if (others.length > 0) {
    const list = mounts.map((mount) => mount.directory).join(", ");
    throw new UsageError(`Several directories are from the storage: ${list}.`, "Choose one with --directory.");
  }
  return first;
}
