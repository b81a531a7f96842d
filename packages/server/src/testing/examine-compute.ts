import { type BuildId, computeCost } from "@slipway/contract";
import type { BuildLedger } from "@slipway/engine";
import type { ModalStandIn } from "@slipway/modal-stand-in";
import { expect } from "vitest";

export interface Paid {
  readonly ledger: BuildLedger;
  readonly standIn: Pick<ModalStandIn, "accounting">;
}

/** What the build has paid for its sandboxes is what the stand-in says that they have run, by its own prices. */
export async function examineComputeMoney({ ledger, standIn }: Paid, build: BuildId): Promise<void> {
  const costs = await ledger.costs(build, "provider");
  const paid = costs.find(({ of }) => of === "modal");
  expect(paid?.reservedMicroUsd).toBe(0);
  expect(paid?.spentMicroUsd).toBe(countedMicroUsd(standIn, build));
}

/** Each of our sandboxes may have been several there; its time is rounded up once. */
function countedMicroUsd({ accounting }: Paid["standIn"], build: BuildId): number {
  const { prices } = accounting;
  const bySandbox = new Map<string, { ms: number; rate: number }>();
  for (const { tags, cpu, memoryMib, startedAtMs, endedAtMs } of accounting.usage()) {
    if (tags["build"] !== build) continue;
    const sandbox = tags["slipway-sandbox"] ?? "";
    const ms = (bySandbox.get(sandbox)?.ms ?? 0) + (endedAtMs ?? Number.NaN) - startedAtMs;
    bySandbox.set(sandbox, { ms, rate: (cpu * prices.cpu + (memoryMib / 1024) * prices.memoryGib) * 1000 });
  }
  return [...bySandbox.values()].reduce((sum, { ms, rate }) => sum + computeCost(rate, ms), 0);
}
