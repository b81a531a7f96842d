import type { Feeds } from "../feed.ts";
import type { Courier } from "../sql/bridge.ts";
import type { RedisConnection } from "./connection.ts";
import { listenForNews, packetOf } from "./news.ts";

/** Announces over Redis what is new in the database. Owns its connection. */
export function createRedisCourier(connection: RedisConnection): Courier {
  let feeds: Feeds;
  const watcher = listenForNews(connection, () => feeds);
  return {
    ...watcher,
    get connected() {
      return connection.connected;
    },
    deliverTo(destination) {
      feeds = destination;
    },
    send(build, offset, message) {
      if (!connection.connected) return;
      connection.client.publish(connection.channelOf(build), `${offset} ${packetOf(message)}`).catch(() => undefined);
    },
    close: connection.close,
  };
}
