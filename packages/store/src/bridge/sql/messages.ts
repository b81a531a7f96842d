import { type BuildId, bridgeLimits, SlipwayError } from "@slipway/contract";
import type { MessagePage, ReadRange } from "@slipway/engine";
import { type Kysely, sql, type Transaction } from "kysely";
import type { DatabaseKind } from "../../database/open.ts";
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

export function createSqlMessages(kind: DatabaseKind, queries: Kysely<BridgeTables>): SqlMessages {
  const messagesOf = (build: BuildId) =>
    queries
      .selectFrom("bridgeMessages")
      .select(["offset", "topic", "key", "sender as from", "at", "encoding", "body"])
      .where("build", "=", build);
  return {
    async append(build, message) {
      const inserting =
        kind === "postgres"
          ? insertAtOnce(queries, build, message)
          : queries.transaction().execute((trx) => insert(trx, build, message));
      const offset = await inserting.catch(ignoreTakenKey);
      if (offset !== undefined) return { offset, fresh: true };
      const taken = await messagesOf(build).where("key", "=", message.key).executeTakeFirstOrThrow();
      return { offset: taken.offset, fresh: false };
    },
    at: async (build, offset) => unseal(await messagesOf(build).where("offset", "=", offset).executeTakeFirstOrThrow()),
    async read(build, range) {
      const { after, topics, limit } = parseInput(readRangeSchema, range);
      // Read the end first. Writers of a build take turns, so everything up to it is visible.
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

/** Rolls back the offset of a message that was there already. */
class KeyTaken extends Error {}
const uniqueViolation = "23505";

function ignoreTakenKey(error: unknown): undefined {
  if (!(error instanceof KeyTaken) && (error as { code?: unknown }).code !== uniqueViolation) throw error;
}

/** One round trip to the server instead of four. SQLite has no such statement, and needs none. */
async function insertAtOnce(queries: Kysely<BridgeTables>, build: BuildId, message: SealedMessage): Promise<number> {
  const { topic, key, from, at, encoding, body } = message;
  const { rows } = await sql<{ offset: number }>`
    with log as (
      insert into bridge_logs (build, last_offset, claimed_paths) values (${build}, 1, 0)
      on conflict (build) do update set last_offset = bridge_logs.last_offset + 1
      where bridge_logs.last_offset < ${bridgeLimits.maxMessagesPerBuild}
      returning last_offset
    )
    insert into bridge_messages (build, "offset", topic, key, sender, at, encoding, body)
    select ${build}, last_offset, ${topic}, ${key}, ${from}, ${at}::bigint, ${encoding}, ${body} from log
    returning "offset"`.execute(queries);
  if (rows[0] === undefined) throw tooMany(build);
  return rows[0].offset;
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
  if (offset > bridgeLimits.maxMessagesPerBuild) throw tooMany(build);
  const { from, ...columns } = message;
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("bridgeMessages")
    .values({ build, offset, sender: from, ...columns })
    .onConflict((conflict) => conflict.columns(["build", "key"]).doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 0n) throw new KeyTaken();
  return offset;
}

function tooMany(build: BuildId): SlipwayError {
  return new SlipwayError(
    "too_large",
    `${build} has ${bridgeLimits.maxMessagesPerBuild} messages, the most it may have`,
  );
}
