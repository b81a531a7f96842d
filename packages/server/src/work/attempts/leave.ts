import type { AttemptId, BuildId, SandboxId, SandboxInfo } from "@slipway/contract";
import type { AttemptWork, BuildLedger, Store, WorkingBuild } from "@slipway/engine";
import type { SandboxProvider } from "@slipway/sandbox";
import { readAll } from "../all-records.ts";
import { endSandbox } from "../left-behind.ts";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import { type Checkpointed, removeSnapshots } from "./checkpoints.ts";
import { freeClaims } from "./claims.ts";
import type { Kept, KeptAttempts } from "./kept.ts";
import { runIdOf, speakerOf } from "./names.ts";
import { leftPlaces, purpose } from "./place.ts";
import { checkpointMade, sandboxChanged } from "./reports.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

type Leaving = Pick<AttemptSurroundings, "build" | "provider" | "clock" | "closing" | "report"> & {
  readonly store: Pick<AttemptSurroundings["store"], "ledger">;
};

/** How long the event of an ended sandbox may take. */
const toldMs = 10_000;

/** Whether the sandbox was ended because its disk was full. */
export async function hasFilledDisk({ provider }: Pick<Leaving, "provider">, sandbox: SandboxId): Promise<boolean> {
  const left = (await provider.list()).find(({ id }) => id === sandbox);
  if (left?.state === "running") return false;
  if (left !== undefined) return left.reason === "out_of_disk";
  const signal = AbortSignal.timeout(toldMs);
  try {
    for await (const event of provider.events({ sandbox, signal })) {
      if (event.type === "sandbox.destroyed") return event.reason === "out_of_disk";
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return false;
}

/** Releases all that an attempt holds; safe to repeat. `keep`: keeps its sandbox for the next attempt. */
export async function leaveAttempt(
  world: AttemptSurroundings,
  attempt: AttemptWork,
  known: Kept | undefined,
  { keep }: { readonly keep: boolean },
): Promise<void> {
  await endPlace(world, attempt, { keep });
  const kept = known ?? (await world.kept.read(attempt.id));
  if (kept !== undefined) await removeSnapshots(world.provider, kept.snapshots);
  await world.kept.remove(attempt.id);
  await freeClaims(world, speakerOf(attempt));
}

/** Ends the sandboxes of all lives of an attempt. */
export async function endPlace(
  world: Leaving,
  { id, task }: Pick<AttemptWork, "id" | "task">,
  { keep }: { readonly keep: boolean },
): Promise<void> {
  const { build, provider } = world;
  for (const info of await provider.list({ labels: { build: build.id, attempt: id } })) {
    if (!keep) await endSandbox(provider, info.id);
    else if (info.state !== "stopped") await (await provider.get(info.id)).stop();
    await tellSandbox(world, { id, task }, info, keep ? "stopped" : "destroyed");
  }
}

/** Stops the attempt's sandbox and takes a checkpoint of it, unless that is done. */
export async function restPlace(
  world: Leaving,
  kept: Kept,
  phase: "paused" | "handover",
  checkpointed: Checkpointed,
): Promise<void> {
  if (kept.sandbox === null) return;
  const sandbox = await world.provider.get(kept.sandbox);
  const info = await sandbox.info();
  if (info.state === "stopped") return;
  await sandbox.stop();
  const { id: snapshot } = await sandbox.snapshot({ name: snapshotName(world.build, kept.id) });
  await checkpointed({ sandbox: kept.sandbox, snapshot, phase });
  await tellSandbox(world, kept, info, "stopped");
}

/** Keeps and reports a new checkpoint, and removes those before it and the sandboxes that the attempt began with. */
export async function keepCheckpoint(
  { build, clock, report, provider }: Leaving,
  kept: Kept,
  made: Parameters<Checkpointed>[0],
  keep: (change: Partial<Kept>) => Promise<Kept>,
): Promise<void> {
  const { id, snapshots, checkpoints } = await keep({
    snapshots: [...kept.snapshots, made.snapshot],
    checkpoints: kept.checkpoints + 1,
  });
  await report([checkpointMade(build, { id, checkpoints }, made, clock.now())]);
  const inUse = await removeSnapshots(provider, snapshots.slice(0, -1));
  await keep({ snapshots: [...inUse, made.snapshot] });
  if (checkpoints > 1) return;
  for (const { id: left } of await leftPlaces({ provider }, build, kept)) await endSandbox(provider, left);
}

/** Reports a sandbox with the cost of its runs and of its time. `info`: as last seen. */
export async function tellSandbox(
  { build, clock, closing, report, store }: Omit<Leaving, "provider">,
  { id, task }: Pick<AttemptWork, "id" | "task">,
  info: SandboxInfo,
  status: "running" | "stopped" | "destroyed",
): Promise<void> {
  const respawn = Number(info.labels["respawn"]);
  const spend = async () => (await costOf(store.ledger, id, respawn)) + (await store.ledger.spentOn(info.id));
  const costMicroUsd = await whenDatabaseIsThere(spend, closing);
  await report([sandboxChanged(build, task, info, { status, costMicroUsd }, clock.now())]);
}

/** Adds up the cost of the runs in one sandbox of an attempt; each run has an account. */
async function costOf(ledger: Pick<BuildLedger, "balance">, attempt: AttemptId, respawn: number): Promise<number> {
  let cost = 0;
  for (let part = 0; ; part++) {
    const { budgetMicroUsd, spentMicroUsd } = await ledger.balance(runIdOf(attempt, respawn, part));
    if (budgetMicroUsd === 0) return cost;
    cost += spentMicroUsd;
  }
}

/** Names an attempt's snapshots, so that forgotten ones can be found. */
export function snapshotName({ id }: Pick<WorkingBuild, "id">, attempt: string): string {
  return `attempt ${id} ${attempt}`;
}

/** Removes sandboxes, snapshots and notes of attempts that are over. Stops sandboxes that awaited tasks will continue in. */
export async function sweepAttempts(
  provider: Pick<SandboxProvider, "get" | "list" | "snapshots">,
  kept: KeptAttempts,
  build: WorkingBuild,
  { wanted, awaited }: { readonly wanted: ReadonlySet<string>; readonly awaited: ReadonlySet<string> },
): Promise<void> {
  for (const { id, labels, state } of await provider.list({ labels: { build: build.id, purpose } })) {
    if (wanted.has(labels["attempt"] ?? "")) continue;
    if (!awaited.has(labels["task"] ?? "")) await endSandbox(provider, id);
    else if (state === "running") await (await provider.get(id)).stop();
  }
  const prefix = snapshotName(build, "");
  const left = (await provider.snapshots.list()).filter(
    ({ name }) => name?.startsWith(prefix) && !wanted.has(name.slice(prefix.length)),
  );
  await removeSnapshots(
    provider,
    left.map(({ id }) => id),
  );
  for (const id of await kept.list()) if (!wanted.has(id)) await kept.remove(id);
}

/** Tasks whose next or new attempt continues in the sandbox of the one before. */
export async function tasksThatGoOn(store: Pick<Store, "builds">, build: BuildId): Promise<string[]> {
  const tasks = await readAll(store, build, "tasks");
  return tasks.flatMap(({ id, status, details }) => {
    const { from } = (details["next"] ?? {}) as { readonly from?: string };
    return (status === "pending" || status === "assigned") && from === "last-attempt" ? [id] : [];
  });
}
