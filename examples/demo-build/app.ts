import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The app's sources, in one directory per task. */
const directory = fileURLToPath(new URL("../demo-app", import.meta.url));

/** Returns a task's files by their paths in the app. */
export function filesOf(name: string): ReadonlyMap<string, string> {
  const root = join(directory, name);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  return new Map(paths.map((path) => [relative(root, path), readFileSync(path, "utf8")]));
}

/** A line for a file to which other tasks also add lines. */
export interface AddedLine {
  readonly file: string;
  readonly line: string;
}

/** Lines of a kind are sorted. The first of its kind goes before the anchor. */
const kinds = [
  { kind: /^import /, anchor: /^$/ },
  { kind: /^ {2}context\.\w+ = /, anchor: /^ {2}return / },
  { kind: /^ {2}routes\.push\(/, anchor: /^ {2}return / },
] as const;

/** Inserts the lines in their places. Skips lines that are already there. */
export function withLines(text: string, added: readonly AddedLine[]): string {
  const lines = text.split("\n");
  for (const { line } of added) {
    if (lines.includes(line)) continue;
    const place = kinds.find(({ kind }) => kind.test(line));
    if (place === undefined) throw new Error(`nobody knows where this line belongs: ${line}`);
    const isBehind = (other: string) => (place.kind.test(other) ? other > line : place.anchor.test(other));
    lines.splice(lines.findIndex(isBehind), 0, line);
  }
  return lines.join("\n");
}

const conflict = /^<{7} .*\n([\s\S]*?)^={7}\n([\s\S]*?)^>{7} .*\n/gm;

/** Keeps both sides of each conflict, sorted, so that the order of the merges does not matter. */
export function withBothSides(text: string): string {
  return text.replace(conflict, (_, ours: string, theirs: string) => {
    const lines = new Set(`${ours}${theirs}`.split("\n").filter((line) => line !== ""));
    return `${[...lines].sort().join("\n")}\n`;
  });
}
