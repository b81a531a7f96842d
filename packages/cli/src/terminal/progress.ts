import type { Output } from "./io.ts";
import { harmless, type Paint } from "./terminal.ts";

/** Progress of long work, on standard error: one changing line on a terminal. */
export interface Progress {
  /** Replaces the line on a terminal; does nothing elsewhere. */
  status(text: string): void;
  /** Prints a line that stays. */
  line(text: string): void;
  clear(): void;
}

export const silentProgress: Progress = { status() {}, line() {}, clear() {} };

export function createProgress(err: Output, paint: Paint): Progress {
  let drawn = false;
  // An unreadable progress line must not fail the work.
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
