import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Context } from "../../input/command.ts";

/** Whether there is somebody to ask. */
export function canAsk({ io, err, json }: Context): boolean {
  return !json && io.stdin.isTTY === true && err.isTerminal;
}

/**
 * The first letter of the answer, small; none for a bare Enter or the end of the input. Ctrl-C stays a signal: the
 * terminal is left as it is.
 */
export async function ask({ io, err }: Context, question: string, signal: AbortSignal): Promise<string> {
  await err.write(`${question} `);
  const lines = createInterface({ input: io.stdin });
  try {
    const closed = once(lines, "close", { signal }).then(() => [""]);
    const [line = ""] = (await Promise.race([once(lines, "line", { signal }), closed])) as string[];
    return line.trim().charAt(0).toLowerCase();
  } finally {
    lines.close();
  }
}
