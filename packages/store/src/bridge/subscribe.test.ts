import { type BridgeMessage, type BuildId, newId } from "@slipway/contract";
import type { ReadRange } from "@slipway/engine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createFeeds } from "./feed.ts";
import { subscribeTo } from "./subscribe.ts";

/** What happens in between: messages reach the log, and anything may be said about them. */
const step = fc.oneof(
  fc.record({ type: fc.constant("append" as const), count: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ type: fc.constant("tell" as const), offset: fc.integer({ min: 1, max: 200 }), whole: fc.boolean() }),
  fc.record({ type: fc.constant("doubt" as const) }),
  fc.record({ type: fc.constant("pause" as const) }),
);

test("whatever is told, lost, repeated or made up, every message comes once and in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat({ max: 5 }), async (steps, after) => {
      const log = Array.from({ length: after }, (_, n) => message(n + 1));
      const build = newId("bld");
      const feeds = createFeeds();
      const end = new AbortController();
      using _ = feeds.follow(build, end.signal);
      const read: number[] = [];
      const reading = (async () => {
        const subscription = subscribeTo(feeds, build, { read: readFrom(log) }, { after, signal: end.signal });
        for await (const { offset } of subscription) read.push(offset);
      })();
      for (const action of steps) {
        if (action.type === "append") for (let n = 0; n < action.count; n++) log.push(message(log.length + 1));
        if (action.type === "doubt") feeds.doubt(build);
        if (action.type === "pause") await new Promise((resolve) => setImmediate(resolve));
        if (action.type === "tell") {
          const said = action.whole ? log[action.offset - 1] : undefined;
          feeds.tell(build, said ?? { offset: action.offset });
        }
      }
      log.push(message(log.length + 1));
      feeds.tell(build, { offset: log.length });
      feeds.doubt(build);
      while ((read.at(-1) ?? after) < log.length) await new Promise((resolve) => setImmediate(resolve));
      end.abort();
      await reading;
      expect(read).toEqual(log.slice(after).map(({ offset }) => offset));
    }),
  );
});

test("the log is read once, and not again for what the feed has", async () => {
  const build = newId("bld");
  const feeds = createFeeds();
  const end = new AbortController();
  using _ = feeds.follow(build, end.signal);
  const log: BridgeMessage[] = [];
  const readings: number[] = [];
  const read = async (of: BuildId, range: ReadRange) => {
    readings.push(range.after);
    return await readFrom(log)(of, range);
  };
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { offset } of subscribeTo(feeds, build, { read }, { after: 0, signal: end.signal })) {
      seen.push(offset);
      if (offset === 300) end.abort();
      else publish(offset + 1);
    }
  })();
  publish(1);
  await reading;
  expect(seen).toHaveLength(300);
  expect(readings).toEqual([0]);

  function publish(offset: number): void {
    log.push(message(offset));
    feeds.tell(build, message(offset));
  }
});

function readFrom(log: readonly BridgeMessage[]) {
  return async (_: BuildId, { after, limit }: ReadRange) => {
    const messages = log.slice(after, after + (limit ?? 100));
    return { messages, next: after + messages.length };
  };
}

function message(offset: number): BridgeMessage {
  const payload = { phase: "build", text: "" };
  return { topic: "progress", key: `${offset}`, from: "host", payload, offset, at: 0 };
}
