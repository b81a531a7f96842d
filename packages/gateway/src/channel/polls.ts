import { type ControlMessage, runChannel } from "@slipway/contract";
import type { Book } from "./book.ts";
import type { Timers } from "./timers.ts";

/** The requests of a runner that wait for a message. */
export interface Polls {
  /** Returns the messages after that number. Returns none after a heartbeat, at the run's end, or when released. */
  wait(after: number, signal: AbortSignal): Promise<readonly ControlMessage[]>;
  /** Releases all of them. */
  release(): void;
}

/** A runner has one poll at a time. A further poll releases the oldest, so dead connections hold no place. */
const maxWaiting = 8;
const pageMessages = 64;
const pageCharacters = 512 * 1024;

export function createPolls({ messages, ending, changes }: Book, timers: Timers): Polls {
  const waiting = new Set<AbortController>();
  return {
    async wait(after, signal) {
      const poll = new AbortController();
      const released = AbortSignal.any([signal, poll.signal]);
      const cancel = timers.after(runChannel.heartbeatMs, () => poll.abort());
      waiting.add(poll);
      const [oldest] = waiting;
      if (waiting.size > maxWaiting) oldest?.abort();
      const isOver = () => messages.length > after || ending.reached !== undefined || released.aborted;
      while (!isOver()) await changes.next(released);
      cancel();
      waiting.delete(poll);
      return page(messages, after);
    },
    release() {
      for (const poll of waiting) poll.abort();
    },
  };
}

/** Returns at least one message, if there is one. */
function page(messages: readonly ControlMessage[], after: number): readonly ControlMessage[] {
  let characters = 0;
  let to = after;
  while (to < messages.length && to - after < pageMessages && characters < pageCharacters) {
    const message = messages[to];
    characters += message !== undefined && "text" in message ? message.text.length : 0;
    to++;
  }
  return messages.slice(after, to);
}
