import type { BuildId } from "@slipway/contract";
import type { Consumers } from "@slipway/engine";
import type { Kysely } from "kysely";
import { deadLetterSchema, parseInput, tryOfMessageSchema } from "../input.ts";
import type { BridgeTables } from "./tables.ts";

export function createSqlConsumers(queries: Kysely<BridgeTables>, now: () => number): Consumers {
  return {
    async position(build, consumer) {
      const row = await queries
        .selectFrom("bridgeConsumers")
        .select("position")
        .where("build", "=", build)
        .where("consumer", "=", consumer)
        .executeTakeFirst();
      return row?.position ?? 0;
    },
    async beginTry(build, consumer, offset) {
      parseInput(tryOfMessageSchema, { consumer, offset });
      const { tries } = await queries
        .insertInto("bridgeConsumers")
        .values({ build, consumer, position: 0, triedOffset: offset, tries: 1 })
        .onConflict((conflict) =>
          conflict.columns(["build", "consumer"]).doUpdateSet(({ eb, ref }) => ({
            triedOffset: offset,
            tries: eb
              .case()
              .when(ref("bridgeConsumers.triedOffset"), "=", offset)
              .then(eb(ref("bridgeConsumers.tries"), "+", 1))
              .else(1)
              .end(),
          })),
        )
        .returning("tries")
        .executeTakeFirstOrThrow();
      return tries;
    },
    async advance(build, consumer, offset) {
      parseInput(tryOfMessageSchema, { consumer, offset });
      await advance(queries, build, consumer, offset);
    },
    async bury(build, letter) {
      const { consumer, offset, tries, reason } = parseInput(deadLetterSchema, letter);
      await queries.transaction().execute(async (trx) => {
        await trx
          .insertInto("bridgeDeadLetters")
          .values({ build, consumer, offset, tries, reason, at: now() })
          .onConflict((conflict) => conflict.columns(["build", "consumer", "offset"]).doNothing())
          .execute();
        await advance(trx, build, consumer, offset);
      });
    },
    deadLetters: async (build) =>
      await queries
        .selectFrom("bridgeDeadLetters")
        .select(["consumer", "offset", "tries", "reason", "at"])
        .where("build", "=", build)
        .orderBy("offset")
        .orderBy("consumer")
        .execute(),
  };
}

async function advance(queries: Kysely<BridgeTables>, build: BuildId, consumer: string, offset: number): Promise<void> {
  await queries
    .insertInto("bridgeConsumers")
    .values({ build, consumer, position: offset, triedOffset: 0, tries: 0 })
    .onConflict((conflict) =>
      conflict
        .columns(["build", "consumer"])
        .doUpdateSet({ position: offset })
        .where("bridgeConsumers.position", "<", offset),
    )
    .execute();
}
