import { printable } from "./printable.ts";

/**
 * Text from an untrusted source, as part of a prompt. The text never contains its own mark, so it can not end the fence early.
 * The mark depends on the text alone, so a recorded answer stays valid.
 */
export function fence(name: string, text: string): string {
  const clean = printable(text).toWellFormed();
  let mark = markOf(clean, 0);
  for (let salt = 1; clean.includes(mark); salt++) mark = markOf(clean, salt);
  return `<${name} ${mark}>\n${clean}\n</${name} ${mark}>`;
}

/** Sixteen hexadecimal digits (FNV-1a in two halves). Need not be hard to guess: `fence` tries until the text lacks it. */
function markOf(text: string, salt: number): string {
  let [one, other] = [0x811c9dc5 ^ salt, 0x01000193 + salt];
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ unit, 0x85ebca6b);
  }
  return [one, other].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}
