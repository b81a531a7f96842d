/** The candidate that the user most likely meant; undefined if none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const farthest = Math.max(1, Math.floor(word.length / 3));
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = word.length > 1 && candidate.startsWith(word) ? 1 : editDistance(word, candidate);
    if (distance <= farthest && (best === undefined || distance < best.distance)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Counts insertions, deletions, replacements and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(rows, i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(rows, i - 2, j - 2) + 1 : Infinity;
      row.push(Math.min(at(rows, i - 1, j) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped));
    }
    rows.push(row);
  }
  return at(rows, a.length, b.length);
}

function at(rows: readonly number[][], i: number, j: number): number {
  return rows[i]?.[j] ?? 0;
}
