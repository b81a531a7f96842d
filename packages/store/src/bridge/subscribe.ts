import { type BridgeMessage, type BridgeTopic, type BuildId, doubling, retry } from "@slipway/contract";
import type { Bridge, MessagePage, SubscribeOptions } from "@slipway/engine";
import type { Feed, Feeds } from "./feed.ts";
import { parseInput, readRangeSchema } from "./input.ts";

/** A page of the largest messages fits into memory. */
const pageMessages = 16;
const retryMs = 500;

/**
 * Reads the log to its end, then the feed, and the log again where the feed has a gap. The offset only moves from one
 * message to the next, so no message is lost or doubled, whatever the feed does.
 */
export async function* subscribeTo(
  feeds: Feeds,
  build: BuildId,
  log: Pick<Bridge, "read">,
  { signal, ...range }: SubscribeOptions,
): AsyncGenerator<BridgeMessage> {
  const { after, topics } = parseInput(readRangeSchema, range);
  using following = feeds.follow(build, signal);
  const { feed } = following;
  let at = after;
  let settledDoubts = -1;
  while (!signal.aborted) {
    const { version, doubts } = feed;
    let page = fromFeed(feed, at, topics);
    if (page.next === at && (feed.head > at || doubts !== settledDoubts)) {
      const read = await readPatiently(() => log.read(build, { after: at, topics, limit: pageMessages }), signal);
      if (read === undefined) return;
      page = read;
    }
    for (const message of page.messages) {
      if (signal.aborted) return;
      yield message;
    }
    if (page.next > at) {
      at = page.next;
    } else {
      settledDoubts = doubts;
      feed.correct(version, at);
      await following.changed(version);
    }
  }
}

function fromFeed(feed: Feed, at: number, topics: readonly BridgeTopic[] | undefined): MessagePage {
  const messages = feed.after(at);
  const wanted = topics === undefined ? messages : messages.filter(({ topic }) => topics.includes(topic));
  return { messages: wanted, next: messages.at(-1)?.offset ?? at };
}

/** Reads until the log can be reached. Undefined: the signal has aborted. */
async function readPatiently(read: () => Promise<MessagePage>, signal: AbortSignal): Promise<MessagePage | undefined> {
  return await retry(read, { waitsMs: doubling(retryMs, retryMs), signal }).catch((error) => {
    if (signal.aborted) return undefined;
    throw error;
  });
}
