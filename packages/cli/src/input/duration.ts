import { UsageError } from "./failure.ts";

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const example = "a duration such as 90s, 20m, 2h, 1d or 500ms";

/** `90s`, `1h30m`, `500ms`. Refuses a bare number: it could mean seconds or milliseconds. */
export function parseDurationMs(text: string, what: string): number {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) throw new UsageError(`${what}: "${text}" is not ${example}.`);
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(count) * unitsMs[unit as keyof typeof unitsMs];
  }
  if (!Number.isSafeInteger(Math.round(totalMs))) throw new UsageError(`${what}: "${text}" is too long.`);
  return Math.round(totalMs);
}

/** The largest two units, for people: `1h 30m`, `45s`, `120ms`. */
export function formatDuration(durationMs: number): string {
  const totalMs = Math.max(0, Math.round(durationMs));
  if (totalMs < 1000) return `${totalMs}ms`;
  const totalSeconds = Math.round(totalMs / 1000);
  const parts: [number, string][] = [
    [Math.floor(totalSeconds / 86_400), "d"],
    [Math.floor(totalSeconds / 3600) % 24, "h"],
    [Math.floor(totalSeconds / 60) % 60, "m"],
    [totalSeconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}
