/** The prompt of a turn that continues after a restart. A driver that needs no prompt ignores it. */
export const goOnPrompt =
  "The program that runs you was restarted. Continue your task from where you were, and do not repeat what is done.";

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

export function cutText(text: string, maxChars: number): string {
  const mark = " [cut]";
  return text.length <= maxChars ? text : text.slice(0, maxChars - mark.length) + mark;
}
