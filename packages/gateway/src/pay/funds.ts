import type { Usage } from "@slipway/contract";
import type { Route } from "../settings/routes.ts";
import { leastTokens, mostExcess } from "./budget.ts";
import { estimateInput, estimateOutput } from "./request-cost.ts";

/** The sizes of the largest requests that a run has paid for. */
export interface PaidTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Few agent requests are smaller. */
const modestInputTokens = 16 * 1024;

/**
 * What a run needs to continue: the price of a modest request, or of the largest it has paid for. Unpaid requests do
 * not count, so no agent can make its run look poor.
 */
export function neededToGoOn(routes: readonly Route[], paid: PaidTokens): number {
  const inputTokens = Math.max(modestInputTokens, paid.inputTokens);
  const costs = routes.map(({ price }) => {
    const outputTokens = Math.min(Math.max(leastTokens, paid.outputTokens), price.maxOutputTokens);
    return estimateInput(price, inputTokens) + estimateOutput(price, outputTokens);
  });
  return Math.max(...costs);
}

/** The size of a paid request: its estimate, unless that is far too high, and the output that had to be covered. */
export function paidTokens(
  { input, output, cacheRead, cacheWrite }: Usage,
  { inputTokens, neededTokens }: { readonly inputTokens: number; readonly neededTokens: number },
): PaidTokens {
  return {
    inputTokens: Math.min(inputTokens, mostExcess * (input + cacheRead + cacheWrite)),
    outputTokens: output === 0 ? 0 : neededTokens,
  };
}
