import type { newId } from "@slipway/contract";
import type { Clock } from "./clock.ts";

export type Ids = typeof newId;

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** Ids that are the same in every run: the clock's time, then a number that counts up. */
export function createCountingIds(clock: Clock): Ids {
  let count = 0;
  return (prefix, nowMs = clock.now()) =>
    `${prefix}_${encode(nowMs, 9)}${encode(count++, 11)}` as ReturnType<typeof newId<typeof prefix>>;
}

function encode(value: number, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32)) text = alphabet.charAt(rest % 32) + text;
  return text;
}
