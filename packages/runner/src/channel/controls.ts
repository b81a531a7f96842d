import { readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type ControlMessage, controlResponseSchema } from "@slipway/contract";
import { ask, type Line } from "./ask.ts";

/** An empty answer that comes sooner means that the poll was let go; the next one waits a little. */
const earlyMs = 1000;

/** Asks the host for messages for ever. `place` is the file that remembers the last one that was taken; `known` counts more. */
export async function* pollControls(
  line: Line,
  place: string,
  signal: AbortSignal,
  known?: number,
): AsyncGenerator<ControlMessage> {
  let after = known ?? (await readPlace(place));
  for (;;) {
    const askedAt = performance.now();
    const request = { method: "GET", path: `/run/control?after=${after}` } as const;
    const answer = await ask(line, request, controlResponseSchema, signal);
    if ("error" in answer) throw answer.error;
    const fresh = answer.body.messages.filter(({ sequence }) => sequence > after);
    for (const message of fresh) {
      after = message.sequence;
      // Before it is handed out: a restart hands none out twice. On a full disk the message counts more than its number.
      await writePlace(place, after).catch(() => undefined);
      yield message;
    }
    if (fresh.length === 0 && performance.now() - askedAt < earlyMs) await delay(earlyMs, undefined, { signal });
  }
}

async function readPlace(path: string): Promise<number> {
  const text = await readFile(path, "utf8").catch(() => "");
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

async function writePlace(path: string, sequence: number): Promise<void> {
  await writeFile(`${path}.new`, String(sequence));
  await rename(`${path}.new`, path);
}
