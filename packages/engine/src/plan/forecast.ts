import type { Task } from "@slipway/contract";
import { criticalPath } from "./critical-path.ts";

/** How long the gates of one task keep a sandbox busy, together: each step that judges starts in a fresh one. */
const gateMinutes = 10;

/**
 * What the sandboxes of a plan may cost if its estimates hold: each attempt's for as long as its task takes, those of gates,
 * and main's, which lives as long as the plan takes at least.
 */
export function forecastCompute(tasks: readonly Task[], usdPerMinute: (gpu: string | undefined) => number): number {
  const attempts = tasks.reduce((sum, { estimate, gpu }) => sum + estimate.minutes * usdPerMinute(gpu), 0);
  const plain = usdPerMinute(undefined);
  return attempts + tasks.length * gateMinutes * plain + criticalPath(tasks).minutes * plain;
}
