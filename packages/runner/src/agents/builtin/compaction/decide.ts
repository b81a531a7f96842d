import type { ModelMessage } from "ai";

/** For English and code. A mild overestimate is safer. */
const charsPerToken = 3.5;
/** The last steps, which stay as they are. */
const keptSteps = 6;

export function estimateTokens(messages: readonly ModelMessage[]): number {
  return Math.ceil(JSON.stringify(messages).length / charsPerToken);
}

/**
 * Chooses the messages to summarise once a conversation exceeds `limitTokens`: all but the first prompt and the latest
 * steps. A step is an answer with its tool results and is never split. Undefined: nothing to gain.
 */
export function planCompaction(
  messages: readonly ModelMessage[],
  limitTokens: number,
): { readonly from: number; readonly to: number } | undefined {
  if (estimateTokens(messages) <= limitTokens) return undefined;
  const answers = messages.flatMap((message, index) => (message.role === "assistant" ? [index] : []));
  for (let kept = keptSteps; kept >= 1; kept--) {
    const to = answers.at(-kept);
    if (to === undefined || to < 3) continue;
    // Long latest steps leave less room for others.
    if (kept === 1 || estimateTokens(messages.slice(to)) <= limitTokens / 2) return { from: 1, to };
  }
  return undefined;
}
