import { type BuildId, outgoingMessageSchema } from "@slipway/contract";
import { z } from "zod";
import type { Feeds, FeedsWatcher, News } from "../feed.ts";
import { isSmall, type SealedMessage } from "../sealed.ts";
import type { RedisConnection } from "./connection.ts";

const packetSchema = z.object({ at: z.int(), message: outgoingMessageSchema });

/** What follows the offset on the channel: the message, or nothing if it is large. */
export function packetOf(sealed: SealedMessage): string {
  if (!isSmall(sealed)) return "";
  const { topic, key, from, at, body } = sealed;
  // The payload is JSON text already.
  return `{"at":${at},"message":{"topic":"${topic}","key":${JSON.stringify(key)},"from":"${from}","payload":${body}}}`;
}

/** Listens on the channels of followed builds. Doubts them all after each loss of the connection. */
export function listenForNews(connection: RedisConnection, feeds: () => Feeds): FeedsWatcher {
  const { client, channelOf } = connection;
  const listeners = new Map<BuildId, (text: string) => void>();
  const leave = (build: BuildId, listener: (text: string) => void) =>
    client.unsubscribe(channelOf(build), listener).catch(ignore);
  const join = async (build: BuildId, listener: (text: string) => void) => {
    // Fails without a connection; the next connection subscribes again.
    const joined = await client.subscribe(channelOf(build), listener).then(() => true, ignore);
    if (!joined) return;
    // News between the subscriber's first read and now may be lost.
    if (listeners.get(build) === listener) feeds().doubt(build);
    else await leave(build, listener);
  };
  client.on("ready", () => {
    for (const [build, listener] of listeners) void join(build, listener);
  });
  return {
    followed(build) {
      const listener = (text: string) => {
        const news = readNews(text);
        if (news === undefined) feeds().doubt(build);
        else feeds().tell(build, news);
      };
      listeners.set(build, listener);
      void join(build, listener);
    },
    left(build) {
      const listener = listeners.get(build);
      listeners.delete(build);
      if (listener !== undefined) void leave(build, listener);
    },
  };
}

/** Unexpected news sends readers to the log. Well-formed news is believed: whoever can write to Redis can forge it. */
function readNews(text: string): News | undefined {
  const [digits = ""] = /^[1-9][0-9]{0,14} /.exec(text) ?? [];
  const offset = Number(digits);
  if (offset === 0) return undefined;
  if (text.length === digits.length) return { offset };
  try {
    const { at, message } = packetSchema.parse(JSON.parse(text.slice(digits.length)));
    return Object.freeze({ ...message, offset, at });
  } catch {
    return undefined;
  }
}

function ignore(): void {}
