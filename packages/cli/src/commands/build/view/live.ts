import { stripVTControlCharacters } from "node:util";
import type { Output } from "../../../terminal/io.ts";

/** Lines at the end of a terminal that are drawn again in place. */
export interface Live extends Disposable {
  draw(lines: readonly string[]): void;
  /** Puts a line above them, to stay. */
  line(text: string): void;
  /** Takes them away, until they are drawn again. */
  clear(): void;
}

const begin = "\x1b[?2026h\x1b[?25l\x1b[?7l";
const end = "\x1b[?7h\x1b[?2026l";
const showCursor = "\x1b[?25h";

export function createLive(output: Output): Live {
  let drawn: readonly string[] = [];
  // What nobody can read is no reason to fail the work.
  const write = (text: string) => void output.write(text).catch(() => {});
  /** To the first of them. A terminal that was made narrower has broken them into more rows. */
  const back = () => {
    const { cols } = output.size();
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / cols)), 0);
    return rows === 0 ? "" : `\x1b[${rows}A\r${rows > drawn.length ? "\x1b[J" : ""}`;
  };
  const show = (above: string, lines: readonly string[]) => {
    // Nothing is broken into rows: what is wider than it seems is cut off by the terminal. Each row is emptied before it is
    // written: behind a line that fills it, the terminal would take the last character away.
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
      // A line that stays may be as long as it likes.
      else show(`\x1b[J\x1b[?7h${text}\n\x1b[?7l`, drawn);
    },
    clear,
    [Symbol.dispose]: clear,
  };
}

function widthOf(line: string): number {
  return stripVTControlCharacters(line).length;
}
