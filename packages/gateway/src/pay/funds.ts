import type { Usage } from "@slipway/contract";
import type { Route } from "../settings/routes.ts";
import { leastTokens, mostExcess } from "./budget.ts";
import { estimateInput, estimateOutput } from "./request-cost.ts";

/** Of the largest requests that a run has paid for. */
export interface PaidTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Few requests of agents are smaller. */
const modestInputTokens = 16 * 1024;

/**
 * What a run must have left to go on: the price of a modest request, or of one as large as it has paid for before. What
 * it only asks for does not count, so that no agent can make its run look poor.
 */
export function neededToGoOn(routes: readonly Route[], paid: PaidTokens): number {
  const inputTokens = Math.max(modestInputTokens, paid.inputTokens);
  const costs = routes.map(({ price }) => {
    const outputTokens = Math.min(Math.max(leastTokens, paid.outputTokens), price.maxOutputTokens);
    return estimateInput(price, inputTokens) + estimateOutput(price, outputTokens);
  });
  return Math.max(...costs);
}

/**
 * How large a request counts as that was paid for: as the next one like it is estimated, unless that is far too high, and
 * with the output that had to be covered for it to be sent.
 */
export function paidTokens(
  { input, output, cacheRead, cacheWrite }: Usage,
  { inputTokens, neededTokens }: { readonly inputTokens: number; readonly neededTokens: number },
): PaidTokens {
  return {
    inputTokens: Math.min(inputTokens, mostExcess * (input + cacheRead + cacheWrite)),
    outputTokens: output === 0 ? 0 : neededTokens,
  };
}
