import { setTimeout as sleep } from "node:timers/promises";
import type { BridgeMessage, BridgeTopic, BuildId } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";

export interface ConsumeOptions {
  readonly build: BuildId;
  /** The name of the stored position. Only one process at a time may consume under it. */
  readonly consumer: string;
  readonly topics?: readonly BridgeTopic[];
  readonly signal: AbortSignal;
  readonly maxTries?: number;
  /** The wait before the second try. It doubles with each further one. */
  readonly pauseMs?: number;
  /** Resolves when the message is handled. A message may come again if its handling was cut short. */
  readonly take: (message: BridgeMessage) => Promise<void>;
}

/**
 * Hands on one message after another, from the consumer's position, until the signal aborts. A message that fails all its
 * tries, or ends the process each time, becomes a dead letter.
 */
export async function consume(bridge: Bridge, options: ConsumeOptions): Promise<void> {
  const { build, consumer, topics, signal } = options;
  const after = await bridge.position(build, consumer);
  for await (const message of bridge.subscribe(build, { after, topics, signal })) {
    await deliver(bridge, message, options);
  }
}

async function deliver(bridge: Bridge, message: BridgeMessage, options: ConsumeOptions): Promise<void> {
  const { build, consumer, signal, maxTries = 3, pauseMs = 1000, take } = options;
  const { offset } = message;
  while (!signal.aborted) {
    const tries = await bridge.beginTry(build, consumer, offset);
    if (tries > maxTries) {
      const reason = "its consumer ended at each try";
      return await bridge.bury(build, { consumer, offset, tries: maxTries, reason });
    }
    const failure = await failureOf(take(message));
    if (failure === undefined) return await bridge.advance(build, consumer, offset);
    if (tries === maxTries) return await bridge.bury(build, { consumer, offset, tries, reason: failure });
    await sleep(pauseMs * 2 ** (tries - 1), undefined, { signal }).catch(() => undefined);
  }
}

async function failureOf(taking: Promise<void>): Promise<string | undefined> {
  try {
    await taking;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
