import { hasCode, type SandboxId } from "@slipway/contract";
import type { BuiltImage, SandboxProvider } from "../provider.ts";

export const deployLabel = "deploy";

/** What a deploy has made. Found again by its id, so that what a lost answer hides is removed as well. */
export interface Made {
  readonly id: string;
  readonly sandboxes: { readonly id: SandboxId; readonly startedAt: number }[];
  readonly startedAt: number;
}

export const snapshotName = ({ id }: Pick<Made, "id">) => `deploy-${id}`;

const limitMs = 120_000;

/** Removes sandboxes, snapshots and, if one is given, the image. Goes on past failures, and names what is left. */
export async function cleanUp(provider: SandboxProvider, made: Made, image: BuiltImage | undefined) {
  const startedAt = performance.now();
  // The caller's own signal may have ended the work.
  const call = { signal: AbortSignal.timeout(limitMs) };
  const left: string[] = [];
  const remove = async (what: string, work: () => Promise<unknown>) => {
    await work().catch((error) => void left.push(`${what} (${(error as Error).message})`));
  };
  const ids = new Set(made.sandboxes.map(({ id }) => id));
  await remove("sandboxes that were not found", async () => {
    for (const { id } of await provider.list({ labels: { [deployLabel]: made.id } }, call)) ids.add(id);
  });
  for (const id of ids) {
    await remove(`sandbox ${id}`, async () => {
      const sandbox = await provider.get(id, call).catch(goneAlready("sandbox_not_found"));
      await sandbox?.destroy(call);
    });
  }
  const sandboxMs = made.sandboxes.reduce((sum, sandbox) => sum + performance.now() - sandbox.startedAt, 0);
  const snapshots = async () => (await provider.snapshots.list(call)).filter(({ name }) => name === snapshotName(made));
  await remove("snapshots that were not found", async () => {
    for (const { id } of await snapshots()) await remove(`snapshot ${id}`, () => provider.snapshots.delete(id, call));
  });
  if (image !== undefined) await remove("image", () => image.remove(call));
  const durationMs = Math.round(performance.now() - startedAt);
  const detail = left.length === 0 ? "nothing is left" : `left: ${left.join(", ")}`;
  return { measured: { durationMs, detail }, left, sandboxMs: Math.round(sandboxMs) };
}

function goneAlready(code: "sandbox_not_found") {
  return (error: unknown): undefined => {
    if (!hasCode(error, code)) throw error;
  };
}
