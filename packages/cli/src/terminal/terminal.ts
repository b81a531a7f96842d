import type { Environment } from "./environment.ts";
import type { Output } from "./io.ts";

/** C0, DEL, C1, line separators and bidirectional marks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them
const controls = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Makes text from a sandbox harmless for a terminal. */
export function harmless(text: string): string {
  return text.replace(controls, "?");
}

/** The same for several lines. */
export function harmlessLines(text: string): string {
  return text.split("\n").map(harmless).join("\n");
}

/** One line of JSON. Also escapes control characters that JSON allows and terminals obey. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replace(controls, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

export type Colour = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
const colourCodes: Readonly<Record<Colour, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

export type Paint = (colour: Colour, text: string) => string;

export function painter(output: Pick<Output, "isTerminal">, environment: Environment): Paint {
  const coloured = output.isTerminal && !environment.NO_COLOR && environment.TERM !== "dumb";
  return (colour, text) => (coloured ? `\x1b[${colourCodes[colour]}m${text}\x1b[0m` : text);
}

/** Aligned columns; empty without rows. Prints cells as they are: clean them first. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string {
  if (rows.length === 0) return "";
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join("  ");
  return [paint("dim", line(header)), ...rows.map(line)].map((text) => `${text.trimEnd()}\n`).join("");
}

/** `name:  value` lines with aligned values. */
export function formatFields(fields: readonly (readonly [string, string])[], paint: Paint): string {
  const width = Math.max(...fields.map(([name]) => name.length)) + 2;
  return fields.map(([name, value]) => `${paint("dim", `${name}:`.padEnd(width))}${value}\n`).join("");
}

/** Quotes a word for a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = "B";
  for (const next of units) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}
