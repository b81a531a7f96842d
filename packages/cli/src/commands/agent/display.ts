import type { Output } from "../../terminal/io.ts";
import type { Progress } from "../../terminal/progress.ts";

/** Shows a run's text on one stream and a changing status line on the other. Both may be one terminal. */
export interface Display {
  write(text: string): Promise<void>;
  /** Shown until the next text; skipped on an unfinished line, which it would erase. */
  status(text: string): void;
  /** Ends an unfinished line. */
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
