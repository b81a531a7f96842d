import { type Limits, microUsdPerUsd } from "@slipway/contract";
import { trialLimits } from "./trial.ts";

/** What Modal charges for sandboxes, in US dollars. A physical core is two of a sandbox's CPUs. */
const prices = { physicalCoreSecond: 0.000_039_42, gibSecond: 0.000_006_67 };
const cpusPerCore = 2;

/** What a sandbox of these limits costs on Modal. */
export function computeMicroUsd({ cpu, memoryMb }: Pick<Limits, "cpu" | "memoryMb">, durationMs: number): number {
  const perSecond = (cpu / cpusPerCore) * prices.physicalCoreSecond + (memoryMb / 1024) * prices.gibSecond;
  return Math.round((perSecond * microUsdPerUsd * durationMs) / 1000);
}

/** As long as an image may take to be built, in a sandbox of the usual limits. */
export const imageBuildMs = 10 * 60_000;
const builderLimits = { cpu: 2, memoryMb: 4096 };
const trialSandboxes = 2;

/** The most that a deploy costs: the image is built from nothing, and the test sandboxes live to their own end. */
export function trialCeilingMicroUsd(): number {
  const trial = computeMicroUsd(trialLimits, trialSandboxes * trialLimits.lifetimeMs);
  return trial + computeMicroUsd(builderLimits, imageBuildMs);
}
