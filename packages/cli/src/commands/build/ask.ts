import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Context } from "../../input/command.ts";

/** Whether a person can answer. */
export function canAsk({ io, err, json }: Context): boolean {
  return !json && io.stdin.isTTY === true && err.isTerminal;
}

/** Returns the first letter of the answer in lower case; "" for Enter or the end of input. Ctrl-C stays a signal. */
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
