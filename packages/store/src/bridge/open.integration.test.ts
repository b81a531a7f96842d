import type { BuildId } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { keysOf, newBuild, progress, publishAll, takeMessages } from "./conformance/subject.ts";
import { describeBridge } from "./conformance/suite.ts";
import { openBridge } from "./open.ts";
import { createFakeClock } from "./testing/clock.ts";
import { createTestDatabases, type TestDatabases } from "./testing/database.ts";
import { startPublisher } from "./testing/publisher.ts";
import { type RedisServer, startRedisServer } from "./testing/redis-server.ts";

/** So rarely that a test would time out before: what arrives has come over Redis. */
const hardlyEverMs = 3_600_000;

describeBridge("the bridge over SQL and Redis", async () => {
  const server = await startRedisServer();
  const databases = createTestDatabases();
  const clock = createFakeClock();
  const open = () =>
    openBridge({ database: databases.open(), clock, redis: { url: server.url }, pollMs: hardlyEverMs });
  const [bridge, other] = [await open(), await open()];
  return {
    bridge,
    other,
    advance: clock.advance,
    async [Symbol.asyncDispose]() {
      await bridge.close();
      await other.close();
      await databases[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
});

describe("a Redis that is lost", () => {
  let server: RedisServer;
  let databases: TestDatabases;
  let build: BuildId;
  const opened: Bridge[] = [];
  const warnings = new Map<Bridge, string[]>();
  beforeEach(async () => {
    server = await startRedisServer();
    databases = createTestDatabases();
    build = newBuild();
  });
  afterEach(async () => {
    for (const bridge of opened.splice(0)) await bridge.close();
    await databases[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
  const open = async (pollMs = 10) => {
    const redis = { url: server.url, prefix: "test/bridge:" };
    const told: string[] = [];
    const settings = { database: databases.open(), clock: { now: Date.now }, redis, pollMs };
    const bridge = await openBridge({ ...settings, warn: (message) => void told.push(message) });
    opened.push(bridge);
    warnings.set(bridge, told);
    return bridge;
  };
  /** It was lost, and this one has it again: what is published from now on is said over it. */
  const isBack = (bridge: Bridge) =>
    vi.waitFor(() => expect(warnings.get(bridge)?.at(-1)).toContain("Redis answers, and is used"));
  const some = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => progress(`${from + n}`));

  test("in mid-stream, with and without its data, costs no message and no order", async () => {
    const [bridge, other] = [await open(), await open()];
    const readers = [bridge, other, other].map((reader) => takeMessages(reader, build, 250));
    await publishAll(bridge, build, some(0, 50));
    await Promise.all([server.kill(), publishAll(bridge, build, some(50, 100))]);
    await Promise.all([server.start("lost"), publishAll(bridge, build, some(100, 150))]);
    await Promise.all([server.kill(), publishAll(other, build, some(150, 200))]);
    await Promise.all([server.start("kept"), publishAll(bridge, build, some(200, 250))]);
    for (const messages of await Promise.all(readers)) {
      expect(keysOf(messages)).toEqual(some(0, 250).map(({ key }) => key));
    }
  });

  test("is used again when it is back", async () => {
    const [bridge, other] = [await open(), await open(hardlyEverMs)];
    const seen = takeMessages(other, build, 4);
    await publishAll(bridge, build, some(0, 2));
    await takeMessages(other, build, 2);
    await server.kill();
    await publishAll(bridge, build, some(2, 3));
    await server.start("lost");
    await takeMessages(other, build, 3);
    await Promise.all([bridge, other].map(isBack));
    await publishAll(bridge, build, some(3, 4));
    expect(keysOf(await seen)).toEqual(["0", "1", "2", "3"]);
  });

  test("before the start is waited for by nobody, and used when it comes", async () => {
    await server.kill();
    const [bridge, other] = [await open(), await open(hardlyEverMs)];
    await bridge.publish(build, progress("a"));
    expect(keysOf(await takeMessages(other, build, 1))).toEqual(["a"]);
    const both = takeMessages(other, build, 2);
    await server.start("lost");
    await Promise.all([bridge, other].map(isBack));
    await bridge.publish(build, progress("b"));
    expect(keysOf(await both)).toEqual(["a", "b"]);
  });

  test("without a word holds up nobody", async () => {
    const [bridge, other] = [await open(), await open()];
    const seen = takeMessages(other, build, 20);
    server.freeze();
    await publishAll(bridge, build, some(0, 20));
    expect(keysOf(await seen)).toEqual(some(0, 20).map(({ key }) => key));
    server.thaw();
  });

  test("and says what is no message is not believed, and costs none", async () => {
    const [bridge, other] = [await open(), await open()];
    const stranger = await createClient({ url: server.url }).connect();
    const seen = takeMessages(other, build, 3);
    await bridge.publish(build, progress("a"));
    await takeMessages(other, build, 1);
    for (const word of ["", "word", "7", "9999999 ", "999999999999999 {", `5 ${"[".repeat(10_000)}`, '3 {"key":1}']) {
      await stranger.publish(`test/bridge:{${build}}:news`, word);
    }
    await publishAll(bridge, build, [progress("b"), progress("c")]);
    expect(keysOf(await seen)).toEqual(["a", "b", "c"]);
    stranger.destroy();
  });

  test("under two processes that are killed and sent again leaves each message once, and none unread", async () => {
    const other = await open();
    const publishers = ["one", "two"].map((from) => {
      const argv = [databases.path, server.url, build, from, "150"];
      return { argv, ...startPublisher(argv) };
    });
    const read: string[] = [];
    const enough = new AbortController();
    const reading = (async () => {
      for await (const { key } of other.subscribe(build, { after: 0, signal: enough.signal })) {
        read.push(key);
        if (read.length === 300) enough.abort();
      }
    })();
    await Promise.all(publishers.map((publisher) => publisher.acknowledged(40)));
    await server.kill();
    for (const publisher of publishers) publisher.kill();
    const acknowledged = (await Promise.all(publishers.map(({ ended }) => ended))).flat();
    await server.start("lost");
    const stored = (await readAll(other)).length;
    expect(stored).toBeGreaterThanOrEqual(acknowledged.length);
    expect(stored).toBeLessThanOrEqual(acknowledged.length + publishers.length);
    await Promise.all(publishers.map(({ argv }) => startPublisher(argv).ended));
    await reading;
    expect(read).toEqual((await readAll(other)).map(({ key }) => key));
    for (const from of ["one", "two"]) {
      const keys = Array.from({ length: 150 }, (_, n) => `${from}:${n}`);
      expect(read.filter((key) => key.startsWith(from))).toEqual(keys);
    }
  });

  async function readAll(bridge: Bridge) {
    const pages = [];
    for (let page = await bridge.read(build, { after: 0 }); page.messages.length > 0; ) {
      pages.push(...page.messages);
      page = await bridge.read(build, { after: page.next });
    }
    return pages;
  }
});
