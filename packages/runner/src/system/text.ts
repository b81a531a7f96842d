/**
 * The prompt of a turn that goes on where a restart of the runner ended it. A driver that can continue without a word from
 * the user does so instead.
 */
export const goOnPrompt =
  "The program that runs you was restarted. Go on with your task from where you were; what is done need not be done again.";

/** Undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Texts cut to what the contract's events allow, and marked where they are cut. */
export const longText = (text: string): string => cutText(text, 64 * 1024);
export const shortText = (text: string): string => cutText(text, 4096);
export const idText = (text: string): string => cutText(text, 256);

function cutText(text: string, maxChars: number): string {
  const mark = " [cut]";
  return text.length <= maxChars ? text : text.slice(0, maxChars - mark.length) + mark;
}
