import { stripVTControlCharacters } from "node:util";
import type { Output } from "../../../terminal/io.ts";

/** Lines at the end of a terminal that are redrawn in place. */
export interface Live extends Disposable {
  draw(lines: readonly string[]): void;
  /** Puts a permanent line above them. */
  line(text: string): void;
  /** Removes them until the next `draw`. */
  clear(): void;
}

const begin = "\x1b[?2026h\x1b[?25l\x1b[?7l";
const end = "\x1b[?7h\x1b[?2026l";
const showCursor = "\x1b[?25h";

export function createLive(output: Output): Live {
  let drawn: readonly string[] = [];
  // An output that nobody can read must not fail the work.
  const write = (text: string) => void output.write(text).catch(() => {});
  /** Moves to the first drawn line. A terminal that became narrower has wrapped the lines into more rows. */
  const back = () => {
    const { cols } = output.size();
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / cols)), 0);
    return rows === 0 ? "" : `\x1b[${rows}A\r${rows > drawn.length ? "\x1b[J" : ""}`;
  };
  const show = (above: string, lines: readonly string[]) => {
    // Wrapping is off, so the terminal cuts lines that are wider than they seem. Each row is cleared before it is written:
    // clearing after a line that fills the row would remove its last character.
    write(`${begin}${back()}${above}${lines.map((line) => `\x1b[2K${line}\n`).join("")}\x1b[J${end}`);
    drawn = lines;
  };
  const clear = () => {
    if (drawn.length > 0) write(`${back()}\x1b[J${showCursor}`);
    drawn = [];
  };
  return {
    draw: (lines) => show("", lines),
    line(text) {
      if (drawn.length === 0) write(`${text}\n`);
      // A permanent line may wrap.
      else show(`\x1b[J\x1b[?7h${text}\n\x1b[?7l`, drawn);
    },
    clear,
    [Symbol.dispose]: clear,
  };
}

function widthOf(line: string): number {
  return stripVTControlCharacters(line).length;
}
