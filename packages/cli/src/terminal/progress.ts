import type { Output } from "./io.ts";
import { harmless, type Paint } from "./terminal.ts";

/** What goes on during long work, on standard error. A terminal sees one line that changes; a file sees every line. */
export interface Progress {
  /** Replaces the line on a terminal; nothing elsewhere. */
  status(text: string): void;
  /** Stays visible. */
  line(text: string): void;
  clear(): void;
}

export const silentProgress: Progress = { status() {}, line() {}, clear() {} };

export function createProgress(err: Output, paint: Paint): Progress {
  let drawn = false;
  // A progress line that nobody can read is no reason to fail the work.
  const write = (text: string) => void err.write(text).catch(() => {});
  const clear = () => {
    if (drawn) write("\r\x1b[2K");
    drawn = false;
  };
  return {
    status(text) {
      if (!err.isTerminal) return;
      drawn = true;
      write(`\r\x1b[2K${paint("dim", harmless(text).slice(0, err.size().cols - 1))}`);
    },
    line(text) {
      clear();
      write(`${err.isTerminal ? harmless(text) : text}\n`);
    },
    clear,
  };
}
