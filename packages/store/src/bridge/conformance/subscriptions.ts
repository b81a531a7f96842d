import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { discovery, keysOf, newBuild, progress, publishAll, type Subject, takeMessages } from "./subject.ts";

export function describeSubscriptions(subject: Subject): void {
  describe("a subscription", () => {
    test("gets what is there and what comes, from this process and from others", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await bridge.publish(build, progress("a"));
      const both = [bridge, other].map((from) => takeMessages(from, build, 3));
      await bridge.publish(build, progress("b"));
      await other.publish(build, progress("c"));
      for (const messages of await Promise.all(both)) expect(keysOf(messages)).toEqual(["a", "b", "c"]);
    });

    test("of twenty at their own pace gets every message once and in order", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const keys = Array.from({ length: 200 }, (_, n) => `${n}`);
      const readers = Array.from({ length: 20 }, async (_, reader) => {
        const read: string[] = [];
        const { signal } = new AbortController();
        for await (const { key } of (reader % 2 === 0 ? bridge : other).subscribe(build, { after: 0, signal })) {
          read.push(key);
          if (read.length === keys.length) break;
          for (let turn = 0; turn < reader; turn++) await new Promise((resolve) => setImmediate(resolve));
        }
        return read;
      });
      await publishAll(
        bridge,
        build,
        keys.map((key) => progress(key)),
      );
      for (const read of await Promise.all(readers)) expect(read).toEqual(keys);
    });

    test("goes on from any offset, by any topics, whatever is published meanwhile", async () => {
      const { bridge, other } = subject();
      const plan = fc.record({
        before: fc.nat({ max: 40 }),
        during: fc.integer({ min: 1, max: 40 }),
        after: fc.nat({ max: 40 }),
        topics: fc.constantFrom(undefined, ["discoveries" as const]),
      });
      await fc.assert(
        fc.asyncProperty(plan, async ({ before, during, after: wanted, topics }) => {
          const build = newBuild();
          const after = Math.min(wanted, before);
          // The last one is of the topic, so that a subscription to it has an end to wait for.
          const messages = Array.from({ length: before + during }, (_, n) =>
            n % 2 === 0 || n === before + during - 1 ? discovery(`${n}`) : progress(`${n}`),
          );
          const expected = messages.slice(after).filter(({ topic }) => topics === undefined || topic === "discoveries");
          await publishAll(bridge, build, messages.slice(0, before));
          const taken = takeMessages(other, build, expected.length, { after, topics });
          await publishAll(bridge, build, messages.slice(before));
          expect(keysOf(await taken)).toEqual(expected.map(({ key }) => key));
        }),
        { numRuns: 15 },
      );
    });

    test("ends by its signal, while it waits and between two messages", async () => {
      const { bridge } = subject();
      const build = newBuild();
      const waiting = new AbortController();
      const ended = takeMessages(bridge, build, 1, { signal: waiting.signal });
      waiting.abort();
      expect(await ended).toEqual([]);
      await publishAll(bridge, build, [progress("a"), progress("b")]);
      const reading = new AbortController();
      const read: string[] = [];
      for await (const { key } of bridge.subscribe(build, { after: 0, signal: reading.signal })) {
        read.push(key);
        reading.abort();
      }
      expect(read).toEqual(["a"]);
      expect(await takeMessages(bridge, build, 1, { signal: AbortSignal.abort() })).toEqual([]);
    });

    test("gets messages that are too large for a packet in their place", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const taken = takeMessages(other, build, 3);
      const text = "large ".repeat(2500);
      await publishAll(bridge, build, [progress("a"), progress("b", text), progress("c")]);
      const messages = await taken;
      expect(keysOf(messages)).toEqual(["a", "b", "c"]);
      expect(messages[1]?.payload).toMatchObject({ text });
    });

    test("that begins past the end of the log fails, and so does one whose log is forgotten", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await bridge.publish(build, progress("a"));
      const invalid = { code: "invalid_request" };
      await expect(takeMessages(bridge, build, 1, { after: 2 })).rejects.toMatchObject(invalid);
      await expect(bridge.read(build, { after: 2 })).rejects.toMatchObject(invalid);
      const both = takeMessages(other, build, 2, { after: 1 });
      await other.forget(build);
      await expect(both).rejects.toMatchObject(invalid);
    });
  });
}
