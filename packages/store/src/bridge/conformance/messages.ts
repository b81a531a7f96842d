import { randomBytes } from "node:crypto";
import { bridgeLimits, bridgeTopics, newId, type OutgoingMessage } from "@slipway/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { discovery, keysOf, newBuild, progress, publishAll, type Subject } from "./subject.ts";

export function describeMessages(subject: Subject): void {
  describe("messages", () => {
    test("are read in the order in which they were published, under offsets that count from one", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const offsets = [];
      for (const key of ["a", "b", "c"]) offsets.push((await bridge.publish(build, progress(key))).offset);
      expect(offsets).toEqual([1, 2, 3]);
      const { messages, next } = await other.read(build, { after: 0 });
      expect(keysOf(messages)).toEqual(["a", "b", "c"]);
      expect(messages.map(({ offset }) => offset)).toEqual(offsets);
      expect(messages[0]).toMatchObject(progress("a"));
      expect(next).toBe(3);
    });

    test("of every topic come back as they were", async () => {
      const { bridge } = subject();
      const build = newBuild();
      const messages = oneOfEach();
      expect(messages.map(({ topic }) => topic)).toEqual(bridgeTopics);
      await publishAll(bridge, build, messages);
      const page = await bridge.read(build, { after: 0 });
      expect(page.messages.map(({ offset: _, at: __, ...message }) => message)).toEqual(messages);
    });

    test("that two processes publish at once get all offsets, each once, and each process's in its order", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const keys = (prefix: string) => Array.from({ length: 40 }, (_, n) => `${prefix}${n}`);
      const publish = (from: typeof bridge, prefix: string) =>
        publishAll(
          from,
          build,
          keys(prefix).map((key) => progress(key)),
        );
      await Promise.all([publish(bridge, "a"), publish(other, "b"), publish(bridge, "c")]);
      const first = await bridge.read(build, { after: 0, limit: 100 });
      const rest = await bridge.read(build, { after: first.next });
      const messages = [...first.messages, ...rest.messages];
      expect(messages.map(({ offset }) => offset)).toEqual(Array.from({ length: 120 }, (_, n) => n + 1));
      for (const prefix of ["a", "b", "c"]) {
        expect(keysOf(messages).filter((key) => key.startsWith(prefix))).toEqual(keys(prefix));
      }
    });

    test("can be read from any offset, in pages of any size, by any topics", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const messages = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? discovery(`d${n}`) : progress(`p${n}`)));
      await publishAll(bridge, build, messages);
      const range = fc.record({
        after: fc.nat({ max: 30 }),
        limit: fc.integer({ min: 1, max: 40 }),
        topics: fc.constantFrom(undefined, ["discoveries" as const], ["progress" as const, "merge" as const]),
      });
      await fc.assert(
        fc.asyncProperty(range, async ({ after, limit, topics }) => {
          const read: string[] = [];
          for (let at = after; ; ) {
            const page = await other.read(build, { after: at, limit, topics });
            read.push(...keysOf(page.messages));
            expect(page.messages.length).toBeLessThanOrEqual(limit);
            if (page.next === at) break;
            at = page.next;
          }
          const wanted = messages.slice(after).filter(({ topic }) => topics?.some((name) => name === topic) ?? true);
          expect(read).toEqual(wanted.map(({ key }) => key));
        }),
        { numRuns: 25 },
      );
    });

    test("with a key that is there are there once, whoever sends them again", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const offsets = await Promise.all(
        [bridge, other, bridge, other].map((from) => from.publish(build, progress("once"))),
      );
      expect(offsets).toEqual(offsets.map(() => ({ offset: 1 })));
      expect(await other.publish(build, progress("next"))).toEqual({ offset: 2 });
      expect(await bridge.publish(build, progress("once"))).toEqual({ offset: 1 });
      expect((await bridge.read(build, { after: 0 })).messages).toHaveLength(2);
    });

    test("are the same again, with blanks around their words too", async () => {
      const { bridge } = subject();
      const build = newBuild();
      const payload = { phase: " build ", text: "once" };
      const message = { topic: "progress", key: "once", from: "host", payload } as const;
      expect(await bridge.publish(build, message)).toEqual({ offset: 1 });
      expect(await bridge.publish(build, message)).toEqual({ offset: 1 });
    });

    test("with the key of another one are refused", async () => {
      const { bridge } = subject();
      const build = newBuild();
      await bridge.publish(build, progress("once", "this"));
      const conflict = { code: "idempotency_conflict" };
      await expect(bridge.publish(build, progress("once", "that"))).rejects.toMatchObject(conflict);
      await expect(bridge.publish(build, discovery("once"))).rejects.toMatchObject(conflict);
      await expect(bridge.publish(build, { ...progress("once", "this"), from: "me" })).rejects.toMatchObject(conflict);
      expect((await bridge.read(build, { after: 0 })).next).toBe(1);
    });

    test("that are large come back whole, those that compress and those that do not", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      const even = context("even", "ab ".repeat(300_000));
      const noise = context("noise", randomBytes(60_000).toString("base64"));
      await publishAll(bridge, build, [even, noise]);
      const { messages } = await other.read(build, { after: 0 });
      expect(messages.map(({ payload }) => payload)).toEqual([even.payload, noise.payload]);
      expect(await bridge.publish(build, even)).toEqual({ offset: 1 });
    });

    test("that are too large are refused, and take no offset", async () => {
      const { bridge } = subject();
      const build = newBuild();
      const large = context("large", "x".repeat(bridgeLimits.maxPayloadBytes));
      await expect(bridge.publish(build, large)).rejects.toMatchObject({ code: "too_large" });
      expect(await bridge.publish(build, progress("a"))).toEqual({ offset: 1 });
    });

    test("of builds stay apart, and go when their build is forgotten", async () => {
      const { bridge, other } = subject();
      const [one, two] = [newBuild(), newBuild()];
      await bridge.publish(one, progress("same"));
      await bridge.publish(two, progress("same"));
      await other.forget(one);
      expect((await bridge.read(one, { after: 0 })).messages).toEqual([]);
      expect(keysOf((await bridge.read(two, { after: 0 })).messages)).toEqual(["same"]);
    });
  });
}

function context(name: string, value: string): OutgoingMessage {
  return { topic: "context", key: name, from: "host", payload: { section: "decisions", name, value } };
}

function oneOfEach(): OutgoingMessage[] {
  const detail = { list: [1, 2.5, null, "ü\u0000\ud83d\ude00"], empty: {} };
  const said = (key: string) => ({ key, from: "sbx_1" });
  return [
    { topic: "context", ...said("1"), payload: { section: "rules", name: "line length", value: detail } },
    {
      topic: "file-change",
      ...said("2"),
      payload: { sandbox: newId("sbx"), path: "src/ü.ts", action: "deleted", hash: null },
    },
    { topic: "errors", ...said("3"), payload: { title: "it fails", text: "line 1\nline 2", detail } },
    { topic: "progress", ...said("4"), payload: { phase: "build", text: "" } },
    { topic: "merge", ...said("5"), payload: { candidate: newId("cnd"), status: "approved", text: "" } },
    { topic: "conflicts", ...said("6"), payload: { paths: ["a", "b/c"], between: ["sbx_1", "sbx_2"], text: "" } },
    { topic: "discoveries", ...said("7"), payload: { title: "found", text: "it" } },
  ];
}
