import { compareIds, type DeadLetter } from "@slipway/contract";
import type { Consumers } from "@slipway/engine";
import { z } from "zod";
import { deadLetterSchema, parseInput, tryOfMessageSchema } from "../input.ts";
import { asked, type RedisConnection } from "./connection.ts";

const storedLetterSchema = deadLetterSchema.extend({ at: z.int() });

export function createRedisConsumers({ client, key }: RedisConnection, now: () => number): Consumers {
  return {
    async position(build, consumer) {
      return Number((await asked(client.hGet(key(build, "consumers"), `${consumer} position`))) ?? 0);
    },
    async beginTry(build, consumer, offset) {
      parseInput(tryOfMessageSchema, { consumer, offset });
      return await asked(client.beginTry([key(build, "consumers")], [consumer, offset]));
    },
    async advance(build, consumer, offset) {
      parseInput(tryOfMessageSchema, { consumer, offset });
      await asked(
        client.advanceConsumer([key(build, "consumers"), key(build, "dead-letters")], [consumer, offset, ""]),
      );
    },
    async bury(build, letter) {
      const parsed = parseInput(deadLetterSchema, letter);
      const stored = JSON.stringify({ ...parsed, at: now() } satisfies DeadLetter);
      await asked(
        client.advanceConsumer(
          [key(build, "consumers"), key(build, "dead-letters")],
          [parsed.consumer, parsed.offset, stored],
        ),
      );
    },
    async deadLetters(build) {
      const stored = await asked(client.hVals(key(build, "dead-letters")));
      return stored
        .map((text) => storedLetterSchema.parse(JSON.parse(text)))
        .sort((a, b) => a.offset - b.offset || compareIds(a.consumer, b.consumer));
    },
  };
}
