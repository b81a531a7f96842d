import type { Output } from "../../terminal/io.ts";
import type { Progress } from "../../terminal/progress.ts";

/** Where a run is shown: its words on one stream, and below them a line that changes on the other. Both may be one terminal. */
export interface Display {
  write(text: string): Promise<void>;
  /** Shown until the next words. While a line is unfinished there is no place for it: it would erase what was said. */
  status(text: string): void;
  /** Ends the line that was begun, if there is one. */
  endLine(): Promise<void>;
}

export function createDisplay(out: Output, progress: Progress): Display {
  let isMidLine = false;
  const write = async (text: string) => {
    if (text === "") return;
    progress.clear();
    isMidLine = !text.endsWith("\n");
    await out.write(text);
  };
  return {
    write,
    status(text) {
      if (!isMidLine) progress.status(text);
    },
    async endLine() {
      progress.clear();
      if (isMidLine) await write("\n");
    },
  };
}
