import type { Environment } from "../terminal/environment.ts";
import { UsageError } from "./failure.ts";

/** `512`, `512m` and `4g`, all in megabytes. */
export function parseMegabytes(text: string, what: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(m|mb|mib|g|gb|gib)?$/i.exec(text);
  if (!match) throw new UsageError(`${what}: "${text}" is not a size such as 512, 512m or 4g.`);
  const factor = match[2]?.toLowerCase().startsWith("g") ? 1024 : 1;
  return Math.round(Number(match[1]) * factor);
}

/** KEY=VALUE pairs. With an environment, KEY alone reads its value from there, which keeps it out of shell histories. */
export function parsePairs(pairs: readonly string[], what: string, environment?: Environment): Record<string, string> {
  const record: Record<string, string> = {};
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    const key = equals < 0 ? pair : pair.slice(0, equals);
    if (key === "") throw new UsageError(`${what}: "${pair}" has no name before the "=".`);
    const value = equals < 0 ? environment?.[key] : pair.slice(equals + 1);
    if (value === undefined) {
      const reason = environment
        ? `has no "=", and ${key} is not set in this environment`
        : "must have the form KEY=VALUE";
      throw new UsageError(`${what}: "${pair}" ${reason}.`);
    }
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return record;
}

export function splitCommas(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",").map((part) => part.trim())).filter((part) => part !== "");
}
