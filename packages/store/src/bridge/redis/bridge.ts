import type { Bridge } from "@slipway/engine";
import type { Clock } from "../clock.ts";
import { createFeeds, type Feeds } from "../feed.ts";
import { publishOnce } from "../publish.ts";
import { subscribeTo } from "../subscribe.ts";
import type { RedisAddress } from "./address.ts";
import { createRedisClaims } from "./claims.ts";
import { asked, connectRedis, keyParts } from "./connection.ts";
import { createRedisConsumers } from "./consumers.ts";
import { createRedisMessages } from "./messages.ts";
import { listenForNews } from "./news.ts";

/** Everything in Redis, and as durable as that Redis is. */
export async function openRedisBridge({
  clock,
  ...address
}: RedisAddress & { readonly clock: Clock }): Promise<Bridge> {
  const connection = await connectRedis(address);
  const messages = createRedisMessages(connection);
  const feeds: Feeds = createFeeds(listenForNews(connection, () => feeds));
  return {
    ...createRedisConsumers(connection, clock.now),
    ...createRedisClaims(connection, clock.now),
    async publish(build, message) {
      const { offset } = await publishOnce(messages, build, message, clock.now());
      return { offset };
    },
    read: messages.read,
    subscribe: (build, options) => subscribeTo(feeds, build, messages, options),
    async forget(build) {
      await asked(connection.client.del(keyParts.map((part) => connection.key(build, part))));
      feeds.doubt(build);
    },
    close: connection.close,
  };
}
