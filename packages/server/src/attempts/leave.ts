import type { SandboxId } from "@slipway/contract";
import type { AttemptWork, WorkingBuild } from "@slipway/engine";
import { removePlace } from "./place.ts";
import { sandboxChanged } from "./reports.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

type Leaving = Pick<AttemptSurroundings, "build" | "provider" | "providerName" | "clock" | "report">;

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
  const { build, provider, providerName, clock, report } = world;
  for (const { id: sandbox, state, createdAt } of await provider.list({ labels: { build: build.id, attempt: id } })) {
    const life = { id: sandbox, provider: providerName, task, createdAt };
    if (!keep) await removePlace(world, { id: sandbox });
    else if (state !== "stopped") await (await provider.get(sandbox)).stop();
    await report([sandboxChanged(build, life, keep ? "stopped" : "destroyed", clock.now())]);
  }
}

export async function freeClaims(
  { bridge, build }: Pick<AttemptSurroundings, "bridge" | "build">,
  owner: string,
): Promise<void> {
  for (const { path, owner: held, token } of await bridge.claims(build.id)) {
    if (held === owner) await bridge.release(build.id, { path, token });
  }
}

/** What an attempt's snapshots are called: those that nothing knows of any more are found by it. */
export function snapshotName({ id }: Pick<WorkingBuild, "id">, attempt: string): string {
  return `attempt ${id} ${attempt}`;
}
