import type { ModelMessage } from "ai";

/** Of English and code; a mild overestimate is the safe side. */
const charsPerToken = 3.5;
/** Steps at the end that stay as they are. */
const keptSteps = 6;

export function estimateTokens(messages: readonly ModelMessage[]): number {
  return Math.ceil(JSON.stringify(messages).length / charsPerToken);
}

/**
 * Which messages give way to a summary, once a conversation is longer than `limitTokens`: all but the first prompt and the
 * latest steps. A step is an answer with its tool results; it is never split. Undefined: nothing to gain.
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
    // Long latest steps leave less room for more of them.
    if (kept === 1 || estimateTokens(messages.slice(to)) <= limitTokens / 2) return { from: 1, to };
  }
  return undefined;
}
