import type { BuildId } from "@slipway/contract";
import { expect } from "vitest";
import { type SimulationSettings, usualWorld } from "../simulated/fate.ts";
import type { WorldRecord } from "../simulated/testing/world-record.ts";
import type { StorePart } from "./world/store.ts";

/** One task after the other, each for longer than its sandbox lives; some sandboxes die, too. */
export const lasting: SimulationSettings = {
  ...usualWorld,
  seed: 5,
  edgeProbability: 1,
  pace: 1,
  sigma: 0,
  steps: [5, 9],
  life: { lifetimeMs: 3_600_000, handoverMs: 20_000 },
  shares: { ...usualWorld.shares, died: 0.2 },
};

/** Each step was done once, and nobody took a handover for a failed try. */
export async function expectNothingLost(
  { store, record }: Pick<StorePart, "store"> & { readonly record: WorldRecord },
  build: BuildId,
): Promise<void> {
  expect(await store.builds.get(build)).toMatchObject({ status: "succeeded" });
  expect(Math.max(...record.steps.values())).toBe(1);
  const { tasks } = await store.builds.state(build);
  expect(tasks.map(({ attempts }) => attempts)).toEqual(tasks.map(() => 1));
  expect(await store.ledger.balance(build)).toMatchObject({
    spentMicroUsd: record.spentMicroUsd.get(build),
    reservedMicroUsd: 0,
  });
}
