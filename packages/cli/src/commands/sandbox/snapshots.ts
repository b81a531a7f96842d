import type { SnapshotInfo } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { UsageError } from "../../input/failure.ts";
import { checkName, findSnapshotId, sandboxOf } from "../../input/resolve.ts";
import { formatBytes, formatTable } from "../../terminal/terminal.ts";

export async function take(context: Context): Promise<void> {
  const { args, interrupts } = context;
  const name = args.text("name");
  const expiresInMs = args.durationOrNever("expires");
  if (name !== undefined) checkName(name);
  const sandbox = await sandboxOf(context);
  context.progress.status("taking the snapshot");
  const snapshot = await sandbox.snapshot({
    signal: interrupts.signal,
    ...(name !== undefined && { name }),
    ...(typeof expiresInMs === "number" && { expiresInMs }),
  });
  context.progress.clear();
  await context.result(snapshot, `${snapshot.id}\n`);
}

export async function list(context: Context): Promise<void> {
  const provider = await context.provider();
  const snapshots = await provider.snapshots.list({ signal: context.interrupts.signal });
  await context.result(snapshots, () => table(snapshots, context));
  if (snapshots.length === 0) await context.note("No snapshots. Take one: slipway sandbox snapshot <id>");
}

export async function change(context: Context): Promise<void> {
  const { args } = context;
  const { signal } = context.interrupts;
  const name = args.text("name");
  const expiresInMs = args.durationOrNever("expires");
  if (name === undefined && expiresInMs === undefined) {
    throw new UsageError("No change is given.", "Give --name or --expires.");
  }
  const provider = await context.provider();
  const id = await findSnapshotId(provider, args.argument("snapshot-id"), signal);
  const snapshot = await provider.snapshots.update(
    id,
    {
      ...(name !== undefined && { name: name === "" ? null : checkName(name) }),
      ...(expiresInMs !== undefined && { expiresInMs }),
    },
    { signal },
  );
  await context.result(snapshot, () => table([snapshot], context));
}

export async function remove(context: Context): Promise<void> {
  const { signal } = context.interrupts;
  const provider = await context.provider();
  const id = await findSnapshotId(provider, context.args.argument("snapshot-id"), signal);
  await provider.snapshots.delete(id, { signal });
  await context.result({ snapshot: id, deleted: true }, `${id} deleted\n`);
}

function table(snapshots: readonly SnapshotInfo[], context: Context): string {
  const now = Date.now();
  const rows = snapshots.map((snapshot) => [
    snapshot.id,
    context.clean(snapshot.name ?? "-"),
    snapshot.sandbox,
    formatBytes(snapshot.bytes),
    `${formatDuration(now - snapshot.createdAt)} ago`,
    snapshot.expiresAt === null ? "never" : `in ${formatDuration(snapshot.expiresAt - now)}`,
  ]);
  return formatTable(["SNAPSHOT", "NAME", "SANDBOX", "SIZE", "TAKEN", "EXPIRES"], rows, context.paint);
}
