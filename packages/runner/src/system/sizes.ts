import { cutText } from "./text.ts";

/** As long as the contract's events allow. */
export const longText = (text: string): string => cutText(text, 64 * 1024);
export const shortText = (text: string): string => cutText(text, 4096);
export const idText = (text: string): string => cutText(text, 256);
