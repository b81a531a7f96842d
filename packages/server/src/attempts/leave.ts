import type { SandboxId } from "@slipway/contract";
import type { AttemptWork, WorkingBuild } from "@slipway/engine";
import { removePlace } from "./place.ts";
import { sandboxChanged } from "./reports.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

type Leaving = Pick<AttemptSurroundings, "build" | "provider" | "clock" | "report">;

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
  const { build, provider, clock, report } = world;
  for (const info of await provider.list({ labels: { build: build.id, attempt: id } })) {
    if (!keep) await removePlace(world, info);
    else if (info.state !== "stopped") await (await provider.get(info.id)).stop();
    await report([sandboxChanged(build, task, info, keep ? "stopped" : "destroyed", clock.now())]);
  }
}

/** What an attempt's snapshots are called: those that nothing knows of any more are found by it. */
export function snapshotName({ id }: Pick<WorkingBuild, "id">, attempt: string): string {
  return `attempt ${id} ${attempt}`;
}
