const maxPairs = 6;
const shownChars = 160;
const charsBeforeDifference = 40;

/** Shows where the request differs from the nearest recorded one: `-` recorded, `+` requested. */
export function nearestDifference(asked: string, recorded: readonly string[]): string {
  const askedLines = asked.split("\n");
  const candidates = recorded.map((text) => {
    const lines = text.split("\n");
    const [removed, added] = [without(lines, askedLines), without(askedLines, lines)];
    return { removed, added, lines: removed.length + added.length, common: commonChars(text, asked) };
  });
  const [nearest] = candidates.sort((a, b) => a.lines - b.lines || b.common - a.common);
  return nearest === undefined ? "nothing is recorded" : showPairs(nearest.removed, nearest.added);
}

function showPairs(removed: readonly string[], added: readonly string[]): string {
  const count = Math.max(removed.length, added.length);
  const shown: string[] = [];
  for (let i = 0; i < Math.min(count, maxPairs); i++) {
    const [before, after] = [removed[i], added[i]];
    const start = Math.max(0, commonChars(before ?? "", after ?? "") - charsBeforeDifference);
    if (before !== undefined) shown.push(`- ${excerpt(before, start)}`);
    if (after !== undefined) shown.push(`+ ${excerpt(after, start)}`);
  }
  if (count > maxPairs) shown.push(`and ${count - maxPairs} more lines`);
  return shown.join("\n");
}

/** Lines that the others lack, counting duplicates. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return left <= 0;
  });
}

function commonChars(a: string, b: string): number {
  let count = 0;
  while (count < a.length && a[count] === b[count]) count++;
  return count;
}

function excerpt(line: string, start: number): string {
  const text = line.slice(start, start + shownChars).trim();
  return `${start > 0 ? "…" : ""}${text}${line.length > start + shownChars ? "…" : ""}`;
}
