import { type BuildId, bridgeLimits, SlipwayError } from "@slipway/contract";
import type { MessagePage, ReadRange } from "@slipway/engine";
import type { Kysely, Transaction } from "kysely";
import { parseInput, readRangeSchema, refusePastEnd } from "../input.ts";
import type { Append } from "../publish.ts";
import { type SealedMessage, unseal } from "../sealed.ts";
import type { BridgeTables } from "./tables.ts";

export interface SqlMessages extends Append {
  read(build: BuildId, range: ReadRange): Promise<MessagePage>;
  heads(builds: readonly BuildId[]): Promise<readonly LogHead[]>;
}

interface LogHead {
  readonly build: BuildId;
  readonly offset: number;
}

export function createSqlMessages(queries: Kysely<BridgeTables>): SqlMessages {
  const messagesOf = (build: BuildId) =>
    queries
      .selectFrom("bridgeMessages")
      .select(["offset", "topic", "key", "sender as from", "at", "encoding", "body"])
      .where("build", "=", build);
  return {
    async append(build, message) {
      const offset = await queries
        .transaction()
        .execute((trx) => insert(trx, build, message))
        .catch(ignoreTakenKey);
      if (offset !== undefined) return { offset, fresh: true };
      const taken = await messagesOf(build).where("key", "=", message.key).executeTakeFirstOrThrow();
      return { offset: taken.offset, fresh: false };
    },
    at: async (build, offset) => unseal(await messagesOf(build).where("offset", "=", offset).executeTakeFirstOrThrow()),
    async read(build, range) {
      const { after, topics, limit } = parseInput(readRangeSchema, range);
      // The end first: all up to there is visible, since writers of a build take turns.
      const head = (await headsOf(queries, [build]))[0]?.offset ?? 0;
      refusePastEnd(build, after, head);
      if (after === head) return { messages: [], next: head };
      const rows = await messagesOf(build)
        .where("offset", ">", after)
        .where("offset", "<=", head)
        .$if(topics !== undefined, (query) => query.where("topic", "in", topics ?? []))
        .orderBy("offset")
        .limit(limit)
        .execute();
      const last = rows.length === limit ? rows.at(-1)?.offset : undefined;
      return { messages: await Promise.all(rows.map(unseal)), next: last ?? head };
    },
    heads: (builds) => headsOf(queries, builds),
  };
}

async function headsOf(queries: Kysely<BridgeTables>, builds: readonly BuildId[]): Promise<LogHead[]> {
  return await queries
    .selectFrom("bridgeLogs")
    .select(["build", "lastOffset as offset"])
    .where("build", "in", builds)
    .execute();
}

/** Rolls the offset back that the message would have had. */
class KeyTaken extends Error {}

function ignoreTakenKey(error: unknown): undefined {
  if (!(error instanceof KeyTaken)) throw error;
}

async function insert(trx: Transaction<BridgeTables>, build: BuildId, message: SealedMessage): Promise<number> {
  const { lastOffset: offset } = await trx
    .insertInto("bridgeLogs")
    .values({ build, lastOffset: 1, claimedPaths: 0 })
    .onConflict((conflict) =>
      conflict.column("build").doUpdateSet(({ eb, ref }) => ({ lastOffset: eb(ref("bridgeLogs.lastOffset"), "+", 1) })),
    )
    .returning("lastOffset")
    .executeTakeFirstOrThrow();
  if (offset > bridgeLimits.maxMessagesPerBuild) {
    throw new SlipwayError(
      "too_large",
      `${build} has ${bridgeLimits.maxMessagesPerBuild} messages, the most it may have`,
    );
  }
  const { from, ...columns } = message;
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("bridgeMessages")
    .values({ build, offset, sender: from, ...columns })
    .onConflict((conflict) => conflict.columns(["build", "key"]).doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 0n) throw new KeyTaken();
  return offset;
}
