const amount = /^(\d+(?:[.,/]\d+)?)\s*([a-z]+)\s*(.*)$/i;

/** What somebody types, such as `2 kg apples`, as an amount and a name. */
export function readEntry(text) {
  const entry = text.trim().replace(/\s+/g, " ");
  const [, number, unit, name] = amount.exec(entry) ?? [];
  if (number === undefined) return { amount: "", name: entry };
  return { amount: `${number} ${unit.toLowerCase()}`, name };
}
