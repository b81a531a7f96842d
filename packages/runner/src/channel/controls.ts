import { readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type ControlMessage, controlResponseSchema } from "@slipway/contract";
import { ask, type Line } from "./ask.ts";

/** An empty answer before this time means that the host released the poll. Wait a little before the next one. */
const earlyMs = 1000;

/** Polls the host for messages forever. The file `place` remembers the last one; `known` takes precedence. */
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
      // Write before yielding, so that a restart yields no message twice. On a full disk the message matters more than
      // its number.
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
