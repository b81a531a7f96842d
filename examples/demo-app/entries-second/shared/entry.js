const amount = /^(\d+(?:[.,/]\d+)?)\s*([a-z]+)\s*(.*)$/i;

/** What somebody types, such as `2 kg apples`, as an amount and a name. */
export function readEntry(text) {
  const entry = text.trim().replace(/\s+/g, " ");
  const found = amount.exec(entry);
  if (found === null) return { amount: "", name: entry };
  const [, number, unit, name] = found;
  return { amount: `${number} ${unit.toLowerCase()}`, name: name.trim() };
}
