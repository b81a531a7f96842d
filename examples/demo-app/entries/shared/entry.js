const units = new Set(["g", "kg", "ml", "l", "pack", "packs", "bag", "bags", "can", "cans", "bottle", "bottles"]);
const amount = /^(\d+(?:[.,/]\d+)?)\s*([a-z]*)\s+(.+)$/i;

/** What somebody types, such as `2 kg apples` or `6 eggs`, as an amount and a name. */
export function readEntry(text) {
  const entry = text.trim().replace(/\s+/g, " ");
  const [, number, word, rest] = amount.exec(entry) ?? [];
  if (number === undefined) return { amount: "", name: entry };
  if (word === "") return { amount: number, name: rest };
  if (units.has(word.toLowerCase())) return { amount: `${number} ${word.toLowerCase()}`, name: rest };
  return { amount: number, name: `${word} ${rest}` };
}
