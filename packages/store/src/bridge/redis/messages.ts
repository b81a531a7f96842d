import { type BridgeMessage, type BuildId, bridgeLimits, SlipwayError } from "@slipway/contract";
import type { MessagePage, ReadRange } from "@slipway/engine";
import { parseInput, readRangeSchema, refusePastEnd } from "../input.ts";
import type { Append } from "../publish.ts";
import { unseal } from "../sealed.ts";
import { asked, type RedisConnection } from "./connection.ts";
import { packetOf } from "./news.ts";

export interface RedisMessages extends Append {
  read(build: BuildId, range: ReadRange): Promise<MessagePage>;
}

/** One stream per build. The id of an entry is `0-<offset>`. */
export function createRedisMessages({ client, key }: RedisConnection): RedisMessages {
  return {
    async append(build, message) {
      const { topic, from, at, encoding, body } = message;
      const [offset, fresh] = await asked(
        client.appendMessage(
          [key(build, "log"), key(build, "keys")],
          [
            key(build, "news"),
            packetOf(message),
            bridgeLimits.maxMessagesPerBuild,
            message.key,
            ...[topic, from, at, encoding, body],
          ],
        ),
      );
      if (offset > 0) return { offset, fresh: fresh === 1 };
      throw new SlipwayError(
        "too_large",
        `${build} has ${bridgeLimits.maxMessagesPerBuild} messages, the most it may have`,
      );
    },
    async at(build, offset) {
      const [entry] = (await asked(client.xRange(key(build, "log"), `0-${offset}`, `0-${offset}`))) ?? [];
      if (entry === undefined) throw new SlipwayError("internal", `${build} has no message at ${offset}`);
      return await toMessage(entry);
    },
    async read(build, range) {
      const { after, topics, limit } = parseInput(readRangeSchema, range);
      const log = key(build, "log");
      const entries = (await asked(client.xRange(log, `(0-${after}`, "+", { COUNT: limit }))) ?? [];
      const last = entries.at(-1);
      if (last === undefined) {
        const [newest] = (await asked(client.xRevRange(log, "+", "-", { COUNT: 1 }))) ?? [];
        refusePastEnd(build, after, newest === undefined ? 0 : offsetOf(newest));
        return { messages: [], next: after };
      }
      const wanted = entries.filter(
        ({ message }) => topics === undefined || topics.some((topic) => topic === message["topic"]),
      );
      return { messages: await Promise.all(wanted.map(toMessage)), next: offsetOf(last) };
    },
  };
}

interface Entry {
  readonly id: string;
  readonly message: Readonly<Record<string, string>>;
}

function offsetOf({ id }: Entry): number {
  return Number(id.slice("0-".length));
}

function toMessage(entry: Entry): Promise<BridgeMessage> {
  return unseal({ ...entry.message, offset: offsetOf(entry) });
}
