/** How many lines with such a text are gone, and how many are new. Comments do not count. */
export function linesCompared(pattern: RegExp, before: string, after: string): [removed: number, added: number] {
  const left = new Map<string, number>();
  let added = 0;
  for (const line of linesWith(pattern, before)) left.set(line, (left.get(line) ?? 0) + 1);
  for (const line of linesWith(pattern, after)) {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    else added++;
  }
  return [left.values().reduce((sum, count) => sum + count, 0), added];
}

function linesWith(pattern: RegExp, text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const trimmed = line.trim().slice(0, 2000);
    return /^(\/\/|#(?!\[)|\*)/.test(trimmed) || !pattern.test(trimmed) ? [] : [trimmed];
  });
}
