import { type BridgeMessage, type BuildId, canonicalJson, type OutgoingMessage, SlipwayError } from "@slipway/contract";
import { type SealedMessage, seal } from "./sealed.ts";

export interface Append {
  /** Answers the offset that the message has now, or has had under the same key. */
  append(build: BuildId, message: SealedMessage): Promise<{ readonly offset: number; readonly fresh: boolean }>;
  at(build: BuildId, offset: number): Promise<BridgeMessage>;
}

/** The stored message, and whether it is a new one. Another one under the same key is refused. */
export async function publishOnce(
  log: Append,
  build: BuildId,
  message: OutgoingMessage,
  nowMs: number,
): Promise<{ readonly sealed: SealedMessage; readonly offset: number; readonly fresh: boolean }> {
  const sealed = await seal(message, nowMs);
  const { offset, fresh } = await log.append(build, sealed);
  if (!fresh && contentOf(await log.at(build, offset)) !== contentOf(message)) {
    throw new SlipwayError("idempotency_conflict", `another message of ${build} has the key ${message.key}`);
  }
  return { sealed, offset, fresh };
}

function contentOf({ topic, from, payload }: OutgoingMessage): string {
  return canonicalJson({ topic, from, payload });
}
