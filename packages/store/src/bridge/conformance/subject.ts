import { type BridgeMessage, type BuildId, newId, type OutgoingMessage } from "@slipway/contract";
import type { Bridge, SubscribeOptions } from "@slipway/engine";

/** What an adapter's test hands to the suite, once for all of it. */
export interface BridgeSubject extends AsyncDisposable {
  readonly bridge: Bridge;
  /** The same messages and claims as another process has them. */
  readonly other: Bridge;
  /** Moves the clock of both. */
  advance(ms: number): void;
}

export type Subject = () => BridgeSubject;

export function newBuild(): BuildId {
  return newId("bld");
}

export function progress(key: string, text = key): OutgoingMessage {
  return { topic: "progress", key, from: "host", payload: { phase: "build", text } };
}

export function discovery(key: string): OutgoingMessage {
  return { topic: "discoveries", key, from: "sbx_1", payload: { title: key, text: "" } };
}

/** The first messages of a subscription, which ends with them. */
export async function takeMessages(
  bridge: Bridge,
  build: BuildId,
  count: number,
  options: Partial<SubscribeOptions> = {},
): Promise<BridgeMessage[]> {
  const taken: BridgeMessage[] = [];
  const signal = options.signal ?? new AbortController().signal;
  for await (const message of bridge.subscribe(build, { after: 0, ...options, signal })) {
    taken.push(message);
    if (taken.length === count) break;
  }
  return taken;
}

export function keysOf(messages: readonly BridgeMessage[]): string[] {
  return messages.map(({ key }) => key);
}

export async function publishAll(bridge: Bridge, build: BuildId, messages: readonly OutgoingMessage[]): Promise<void> {
  for (const message of messages) await bridge.publish(build, message);
}
