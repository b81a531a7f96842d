import { computeCost, computePriceSchema, computeRate, type SandboxId } from "@slipway/contract";
import type { SandboxProvider } from "@slipway/sandbox";
import { afterEvent, type RunTime } from "../work/compute/run-time.ts";

/** What local sandboxes cost in tests. */
export const testPrice = computePriceSchema.parse({ core: 0.05, cpusPerCore: 2, memoryGib: 0.001 });

/** Of a sandbox of the usual size. */
export const testRate = computeRate(testPrice, { cpu: 2, memoryMb: 4096 }) ?? Number.NaN;

/** What has run, by the provider's own events, in micro-USD. All its sandboxes have the usual size. */
export async function computeTruth(provider: Pick<SandboxProvider, "events">): Promise<number> {
  const times = new Map<SandboxId, RunTime>();
  for await (const event of provider.events({ follow: false })) {
    const time = afterEvent(times.get(event.sandbox), event);
    if (time !== undefined) times.set(event.sandbox, time);
  }
  return [...times.values()].reduce((sum, { ms }) => sum + computeCost(testRate, ms), 0);
}
