import type { AttemptId, SandboxId, SandboxInfo } from "@slipway/contract";
import type { AttemptWork, BuildLedger, WorkingBuild } from "@slipway/engine";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import { runIdOf } from "./names.ts";
import { removePlace } from "./place.ts";
import { sandboxChanged } from "./reports.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

type Leaving = Pick<AttemptSurroundings, "build" | "provider" | "clock" | "closing" | "report"> & {
  readonly store: Pick<AttemptSurroundings["store"], "ledger">;
};

/** How long a sandbox that is gone may take to be told of. */
const toldMs = 10_000;

/** Whether that is what has ended the sandbox. */
export async function hasFilledDisk({ provider }: Pick<Leaving, "provider">, sandbox: SandboxId): Promise<boolean> {
  const left = await provider.list();
  if (left.some(({ id, state }) => id === sandbox && state === "running")) return false;
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

/** Ends the sandboxes of all lives of an attempt. */
export async function endPlace(
  world: Leaving,
  { id, task }: Pick<AttemptWork, "id" | "task">,
  { keep }: { readonly keep: boolean },
): Promise<void> {
  const { build, provider } = world;
  for (const info of await provider.list({ labels: { build: build.id, attempt: id } })) {
    if (!keep) await removePlace(world, info);
    else if (info.state !== "stopped") await (await provider.get(info.id)).stop();
    await tellSandbox(world, { id, task }, info, keep ? "stopped" : "destroyed");
  }
}

/** `info`: how the sandbox was when it was last looked at. */
export async function tellSandbox(
  { build, clock, closing, report, store }: Omit<Leaving, "provider">,
  { id, task }: Pick<AttemptWork, "id" | "task">,
  info: SandboxInfo,
  status: "running" | "stopped" | "destroyed",
): Promise<void> {
  const respawn = Number(info.labels["respawn"]);
  const costMicroUsd = await whenDatabaseIsThere(() => costOf(store.ledger, id, respawn), closing);
  await report([sandboxChanged(build, task, info, { status, costMicroUsd }, clock.now())]);
}

/** What the runs in one sandbox of an attempt have cost: each is an account. */
async function costOf(ledger: Pick<BuildLedger, "balance">, attempt: AttemptId, respawn: number): Promise<number> {
  let cost = 0;
  for (let part = 0; ; part++) {
    const { budgetMicroUsd, spentMicroUsd } = await ledger.balance(runIdOf(attempt, respawn, part));
    if (budgetMicroUsd === 0) return cost;
    cost += spentMicroUsd;
  }
}

/** What an attempt's snapshots are called: those that nothing knows of any more are found by it. */
export function snapshotName({ id }: Pick<WorkingBuild, "id">, attempt: string): string {
  return `attempt ${id} ${attempt}`;
}
