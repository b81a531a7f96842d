import type { Context } from "../../../input/command.ts";
import { formatBytes } from "../../../terminal/terminal.ts";
import type { LeftOut } from "./hold.ts";

export interface Copied {
  readonly entries: number;
  readonly bytes: number;
  readonly leftOut: readonly LeftOut[];
}

const redrawMs = 80;

/** Options for a copy that shows its progress. */
export function counted(context: Context): { signal: AbortSignal; onBytes(bytes: number): void } {
  let total = 0;
  let shownAt = 0;
  return {
    signal: context.interrupts.signal,
    onBytes(bytes) {
      total += bytes;
      if (Date.now() - shownAt < redrawMs) return;
      shownAt = Date.now();
      context.progress.status(`copied ${formatBytes(total)}`);
    },
  };
}
