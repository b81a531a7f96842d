import { describe, expect, test } from "vitest";
import { consume } from "../consume.ts";
import { discovery, newBuild, progress, publishAll, type Subject } from "./subject.ts";

export function describeConsumers(subject: Subject): void {
  describe("a consumer", () => {
    test("goes on where it was, in whatever process it is started", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await publishAll(
        bridge,
        build,
        ["a", "b", "c", "d"].map((key) => progress(key)),
      );
      const taken: string[] = [];
      const until = (last: string) => consumeUntil(last, async (key) => void taken.push(key));
      await consume(bridge, { build, consumer: "reader", ...until("b") });
      expect(await other.position(build, "reader")).toBe(2);
      await consume(other, { build, consumer: "reader", ...until("d") });
      expect(taken).toEqual(["a", "b", "c", "d"]);
      expect(await bridge.position(build, "somebody-else")).toBe(0);
    });

    test("gets a message again that it could not take, and after its tries the next one", async () => {
      const { bridge, other, advance } = subject();
      const build = newBuild();
      await publishAll(bridge, build, [progress("good"), discovery("bad"), progress("late")]);
      const taken: string[] = [];
      const options = consumeUntil("late", async (key) => {
        taken.push(key);
        if (key === "bad") throw new Error("can not take it");
        if (key === "late" && taken.filter((other) => other === "late").length < 2) throw new Error("not yet");
      });
      advance(1);
      await consume(bridge, { build, consumer: "reader", ...options, maxTries: 3, pauseMs: 0 });
      expect(taken).toEqual(["good", "bad", "bad", "bad", "late", "late"]);
      expect(await other.deadLetters(build)).toEqual([
        { consumer: "reader", offset: 2, tries: 3, reason: "can not take it", at: expect.any(Number) },
      ]);
      expect(await other.position(build, "reader")).toBe(3);
      expect((await other.read(build, { after: 1, limit: 1 })).messages[0]?.key).toBe("bad");
    });

    test("whose process ends at each try has a dead letter, too", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await publishAll(bridge, build, [progress("deadly"), progress("good")]);
      // As a process that dies while it takes the message: the try is begun and nothing follows.
      for (const tries of [1, 2, 3]) expect(await other.beginTry(build, "reader", 1)).toBe(tries);
      const taken: string[] = [];
      await consume(bridge, {
        build,
        consumer: "reader",
        ...consumeUntil("good", async (key) => void taken.push(key)),
      });
      expect(taken).toEqual(["good"]);
      expect(await bridge.deadLetters(build)).toMatchObject([{ offset: 1, tries: 3 }]);
    });

    test("of some topics only gets these", async () => {
      const { bridge } = subject();
      const build = newBuild();
      await publishAll(bridge, build, [progress("a"), discovery("b"), progress("c"), discovery("d")]);
      const taken: string[] = [];
      const options = consumeUntil("d", async (key) => void taken.push(key));
      await consume(bridge, { build, consumer: "reader", topics: ["discoveries"], ...options });
      expect(taken).toEqual(["b", "d"]);
    });

    test("never moves back, and keeps one dead letter of a message", async () => {
      const { bridge, other } = subject();
      const build = newBuild();
      await bridge.advance(build, "reader", 5);
      await other.advance(build, "reader", 3);
      const letter = { consumer: "reader", offset: 4, tries: 1, reason: "first" };
      await bridge.bury(build, letter);
      await other.bury(build, { ...letter, reason: "second" });
      expect(await bridge.position(build, "reader")).toBe(5);
      expect(await bridge.deadLetters(build)).toMatchObject([{ reason: "first" }]);
      await bridge.bury(build, { ...letter, offset: 7, reason: `${"long\0 ".repeat(5000)}` });
      expect(await other.position(build, "reader")).toBe(7);
      expect((await bridge.deadLetters(build)).map(({ offset }) => offset)).toEqual([4, 7]);
    });
  });
}

/** Takes messages until one with the key is done with. */
function consumeUntil(last: string, take: (key: string) => Promise<void>) {
  const enough = new AbortController();
  return {
    signal: enough.signal,
    take: async ({ key }: { readonly key: string }) => {
      await take(key);
      if (key === last) enough.abort();
    },
  };
}
