import {
  type BridgeMessage,
  type BuildId,
  canonicalJson,
  type OutgoingMessage,
  outgoingMessageSchema,
  SlipwayError,
} from "@slipway/contract";
import { parseInput } from "./input.ts";
import { type SealedMessage, seal } from "./sealed.ts";

export interface Append {
  /** Returns the offset of the message, or of the one that was there under its key. */
  append(build: BuildId, message: SealedMessage): Promise<{ readonly offset: number; readonly fresh: boolean }>;
  at(build: BuildId, offset: number): Promise<BridgeMessage>;
}

export interface Published {
  readonly message: OutgoingMessage;
  readonly sealed: SealedMessage;
  readonly offset: number;
  /** False: it was there already. */
  readonly fresh: boolean;
}

/** Refuses another message under the same key. */
export async function publishOnce(
  log: Append,
  build: BuildId,
  input: OutgoingMessage,
  nowMs: number,
): Promise<Published> {
  const message = parseInput(outgoingMessageSchema, input);
  const sealed = await seal(message, nowMs);
  const { offset, fresh } = await log.append(build, sealed);
  if (!fresh && contentOf(await log.at(build, offset)) !== contentOf(message)) {
    throw new SlipwayError("idempotency_conflict", `another message of ${build} has the key ${message.key}`);
  }
  return { message, sealed, offset, fresh };
}

function contentOf({ topic, from, payload }: OutgoingMessage): string {
  return canonicalJson({ topic, from, payload });
}
