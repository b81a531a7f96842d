/**
 * The prompt of a turn that goes on where a restart of the runner ended it. A driver that can continue without a word from
 * the user does so instead.
 */
export const goOnPrompt =
  "The program that runs you was restarted. Go on with your task from where you were; what is done need not be done again.";

/** Cut to what the contract allows, and marked where it is. */
export function cutText(text: string, maxChars: number): string {
  const mark = " [cut]";
  return text.length <= maxChars ? text : text.slice(0, maxChars - mark.length) + mark;
}
