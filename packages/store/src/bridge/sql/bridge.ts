import type { BuildId } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";
import type { Kysely } from "kysely";
import { migrate } from "../../database/migrate.ts";
import type { Database } from "../../database/open.ts";
import type { Clock } from "../clock.ts";
import { createFeeds, type Feeds, type FeedsWatcher, type News } from "../feed.ts";
import { type Published, publishOnce } from "../publish.ts";
import { isSmall, type SealedMessage } from "../sealed.ts";
import { subscribeTo } from "../subscribe.ts";
import { createSqlClaims } from "./claims.ts";
import { createSqlConsumers } from "./consumers.ts";
import { createSqlMessages, type SqlMessages } from "./messages.ts";
import { startPolling } from "./poll.ts";
import { type BridgeTables, bridgeMigrations } from "./tables.ts";

/** How often to look for messages of other processes. */
const defaultPollMs = 100;
/** With a courier, only every so many looks are made, for messages that a process stored but died before announcing. */
const backstopLooks = 20;

/** Announces stored messages to other processes. May lose announcements. */
export interface Courier extends FeedsWatcher {
  readonly connected: boolean;
  /** Receives the news of followed builds. Called once, first. */
  deliverTo(feeds: Feeds): void;
  /** Neither fails nor waits. */
  send(build: BuildId, offset: number, message: SealedMessage): void;
  close(): Promise<void>;
}

export interface SqlBridgeOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly pollMs?: number | undefined;
  readonly courier?: Courier | undefined;
}

/** Messages, consumers and claims in the database. The caller closes the database. */
export async function openSqlBridge({ database, clock, pollMs, courier }: SqlBridgeOptions): Promise<Bridge> {
  await migrate(database, bridgeMigrations);
  const queries = database.queries.withTables<BridgeTables>();
  const messages = createSqlMessages(database.kind, queries);
  const feeds = createFeeds(courier);
  courier?.deliverTo(feeds);
  let looks = 0;
  const polling = startPolling(async () => {
    if (courier?.connected && ++looks % backstopLooks !== 0) return;
    await lookForMessages(feeds, messages);
  }, pollMs ?? defaultPollMs);
  return {
    ...createSqlConsumers(queries, clock.now),
    ...createSqlClaims(queries, clock.now),
    async publish(build, input) {
      const published = await publishOnce(messages, build, input, clock.now());
      const { sealed, offset, fresh } = published;
      if (fresh) {
        feeds.tell(build, newsOf(published));
        courier?.send(build, offset, sealed);
      }
      return { offset };
    },
    read: messages.read,
    subscribe: (build, options) => subscribeTo(feeds, build, messages, options),
    async forget(build) {
      await removeBuild(queries, build);
      feeds.doubt(build);
    },
    async close() {
      await polling[Symbol.asyncDispose]();
      await courier?.close();
    },
  };
}

/** A copy, so that later changes by the sender have no effect. */
function newsOf({ message, sealed, offset }: Published): News {
  if (!isSmall(sealed)) return { offset };
  return Object.freeze({ ...message, payload: JSON.parse(sealed.body), offset, at: sealed.at });
}

async function lookForMessages(feeds: Feeds, messages: SqlMessages): Promise<void> {
  const { builds } = feeds;
  if (builds.length === 0) return;
  for (const { build, offset } of await messages.heads(builds)) feeds.tell(build, { offset });
}

async function removeBuild(queries: Kysely<BridgeTables>, build: BuildId): Promise<void> {
  await queries.transaction().execute(async (trx) => {
    // The row that every writer of the build locks comes first.
    await trx.deleteFrom("bridgeLogs").where("build", "=", build).execute();
    for (const table of ["bridgeMessages", "bridgeConsumers", "bridgeDeadLetters", "bridgeClaims"] as const) {
      await trx.deleteFrom(table).where("build", "=", build).execute();
    }
  });
}
