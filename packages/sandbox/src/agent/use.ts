import { type Dial, expectDone, openCall } from "./connection.ts";

/** The use of a sandbox: operations under way, and for how long there have been none. */
export async function readUse(
  dial: Dial,
  subject: string,
  signal?: AbortSignal,
): Promise<{ operations: number; sinceMs: number }> {
  using call = await openCall(dial, "Q", {}, signal);
  return decodeUse(await expectDone(call, subject));
}

export function decodeUse(answer: Buffer): { operations: number; sinceMs: number } {
  return { operations: answer.readUInt32LE(0), sinceMs: Number(answer.readBigUInt64LE(4)) };
}
