import type { Usage } from "@slipway/contract";
import { estimateInput, estimateOutput, leastTokens, mostExcess } from "./budget.ts";
import type { Route } from "./routes.ts";

/** Few requests of agents are smaller. */
const modestInputTokens = 16 * 1024;

/**
 * What a run must have left to go on: the price of a modest request, or of one as large as it has paid for before. What
 * it only asks for does not count, so that no agent can make its run look poor.
 */
export function neededToGoOn(routes: readonly Route[], paidInputTokens: number): number {
  const inputTokens = Math.max(modestInputTokens, paidInputTokens);
  const costs = routes.map(({ price }) => {
    const outputTokens = Math.min(leastTokens, price.maxOutputTokens);
    return estimateInput(price, inputTokens) + estimateOutput(price, outputTokens);
  });
  return Math.max(...costs);
}

/** How large a request counts as that was paid for: as the next one like it is estimated, unless that is far too high. */
export function paidInputTokens({ input, cacheRead, cacheWrite }: Usage, estimatedTokens: number): number {
  return Math.min(estimatedTokens, mostExcess * (input + cacheRead + cacheWrite));
}
