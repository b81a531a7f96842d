/** A pseudorandom number in [0, 1): the same for the same seed and names. */
export function draw(seed: number, ...names: readonly (string | number)[]): number {
  let hash = 0x811c9dc5 ^ seed;
  const text = names.join("\n");
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** Integers, both ends included. */
export type Range = readonly [least: number, most: number];

export function between([least, most]: Range, drawn: number): number {
  return least + Math.floor(drawn * (most - least + 1));
}

/** Draws from a log-normal distribution with median 1. */
export function logNormal(sigma: number, first: number, second: number): number {
  return Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - first)) * Math.cos(2 * Math.PI * second));
}
