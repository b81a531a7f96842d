import { type ComputePrice, type Computing, computeCost, computeRate } from "@slipway/contract";
import { trialLimits } from "./trial.ts";

/** What sandboxes without a GPU cost that run this long together, in micro-USD. */
export function sandboxCost(price: ComputePrice, { cpu, memoryMb }: Computing, durationMs: number): number {
  return computeCost(computeRate(price, { cpu, memoryMb }) ?? 0, durationMs);
}

/** As long as an image may take to be built, in a sandbox of the usual limits. */
export const imageBuildMs = 10 * 60_000;
const builderLimits = { cpu: 2, memoryMb: 4096 };
const trialSandboxes = 2;

/** The most that a deploy costs: the image is built from nothing, and the test sandboxes live to their own end. */
export function deployCeiling(price: ComputePrice): number {
  const trial = sandboxCost(price, trialLimits, trialSandboxes * trialLimits.lifetimeMs);
  return trial + sandboxCost(price, builderLimits, imageBuildMs);
}
