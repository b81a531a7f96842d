import { setTimeout as pauseBeforeRetry } from "node:timers/promises";
import { hasCode } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keysOf, newBuild, progress, publishAll, takeMessages } from "../conformance/subject.ts";
import { type RedisServer, startRedisServer } from "../testing/redis-server.ts";
import { openRedisBridge } from "./bridge.ts";

let server: RedisServer;
let bridge: Bridge;
let other: Bridge;
beforeEach(async () => {
  server = await startRedisServer();
  const open = () => openRedisBridge({ url: server.url, clock: { now: Date.now } });
  [bridge, other] = [await open(), await open()];
});
afterEach(async () => {
  await bridge.close();
  await other.close();
  await server[Symbol.asyncDispose]();
});

test("a server that is killed and comes back with its data has each acknowledged message, once and in order", async () => {
  const build = newBuild();
  const keys = Array.from({ length: 200 }, (_, n) => `${n}`);
  const seen = takeMessages(other, build, keys.length);
  let killed: Promise<void> | undefined;
  for (const key of keys) {
    if (key === "100") killed = server.kill().then(() => server.start("kept"));
    await publishUntilTaken(key);
  }
  await killed;
  expect(keysOf(await seen)).toEqual(keys);

  async function publishUntilTaken(key: string): Promise<void> {
    try {
      await bridge.publish(build, progress(key));
    } catch (error) {
      if (!hasCode(error, "bridge_unavailable")) throw error;
      await killed;
      await pauseBeforeRetry(10);
      await publishUntilTaken(key);
    }
  }
});

test("a server that comes back without its data ends its subscriptions with an error", async () => {
  const build = newBuild();
  const first = takeMessages(other, build, 2);
  const third = takeMessages(other, build, 3);
  await publishAll(bridge, build, [progress("a"), progress("b")]);
  await first;
  const lost = expect(third).rejects.toMatchObject({ code: "invalid_request" });
  await server.kill();
  await server.start("lost");
  await lost;
});

test("without a server everything says so, and may be asked again", async () => {
  const build = newBuild();
  await server.kill();
  const unavailable = { code: "bridge_unavailable", retry: "later" };
  await expect(bridge.publish(build, progress("a"))).rejects.toMatchObject(unavailable);
  await expect(bridge.read(build, { after: 0 })).rejects.toMatchObject(unavailable);
  await expect(bridge.claims(build)).rejects.toMatchObject(unavailable);
  await expect(bridge.beginTry(build, "reader", 1)).rejects.toMatchObject(unavailable);
  await expect(bridge.forget(build)).rejects.toMatchObject(unavailable);
});
