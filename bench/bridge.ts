import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { newId, type OutgoingMessage } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";
import { openDatabase } from "@slipway/store";
import { openBridge } from "@slipway/store/bridge";
import { openRedisBridge } from "@slipway/store/bridge/redis";
import { createClient } from "redis";
import { percentile, type Report, ratio } from "./measure.ts";
import { startRedis } from "./redis.ts";

const subscribers = 20;
const messages = 2000;
const warmUp = 200;

/** Brings messages to every subscriber; each of them has a connection of its own, and so does the publisher. */
interface Way {
  publish(message: OutgoingMessage): Promise<unknown>;
  /** Starts a subscriber that tells of each message when it has it. */
  subscribe(told: () => void, signal: AbortSignal): Promise<void>;
}

/**
 * From a publish until the last of 20 subscribers has the message, 99th percentile of each. `bridge_p99_vs_redis` is the
 * bridge of a server with Redis, whose truth is a database, against a plain stream; `bridge_p99_vs_durable_redis` against
 * one that has each message on the disk before it is told, as the database has; `bridge_redis_p99_vs_redis` is the bridge
 * that has all in Redis, which servers do not use, against the plain stream.
 */
export async function bridgeVersusRedis(report: Report): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const { url } = parts.use(await startRedis("everysec"));
  const { url: durableUrl } = parts.use(await startRedis("always"));
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-bridge-"));
  parts.defer(() => rmSync(directory, { recursive: true }));
  const clock = { now: Date.now };
  const file = `file:${join(directory, "bridge.db")}`;
  const openOfServer = () => openBridge({ redis: { url }, clock, database: parts.use(openDatabase({ url: file })) });
  const end = new AbortController();
  const ways = {
    redis: await startRace(await overBridge(() => openRedisBridge({ url, clock }), parts), end.signal),
    streams: await startRace(await overStreams(url, parts), end.signal),
    server: await startRace(await overBridge(openOfServer, parts), end.signal),
    durableStreams: await startRace(await overStreams(durableUrl, parts), end.signal),
  };
  parts.defer(() => end.abort());
  const times = {
    redis: [] as number[],
    streams: [] as number[],
    server: [] as number[],
    durableStreams: [] as number[],
  };
  for (let round = -warmUp; round < messages; round++) {
    for (const way of ["redis", "streams", "server", "durableStreams"] as const) {
      const ms = await ways[way](messageOf(round));
      if (round >= 0) times[way].push(ms);
    }
  }
  const compare = (name: string, ours: readonly number[], baseline: readonly number[]) => {
    const measured = { ours: percentile(ours, 0.99), baseline: percentile(baseline, 0.99), n: messages };
    ratio(report, name, { atMost: 2 }, measured);
  };
  compare("bridge_p99_vs_redis", times.server, times.streams);
  compare("bridge_p99_vs_durable_redis", times.server, times.durableStreams);
  compare("bridge_redis_p99_vs_redis", times.redis, times.streams);
}

/** Answers with how long a message took to the last of the subscribers. */
async function startRace(way: Way, signal: AbortSignal): Promise<(message: OutgoingMessage) => Promise<number>> {
  let missing = 0;
  let onLast = () => {};
  const told = () => {
    if (--missing === 0) onLast();
  };
  for (let n = 0; n < subscribers; n++) await way.subscribe(told, signal);
  return async (message) => {
    missing = subscribers;
    const arrived = new Promise<number>((resolve) => {
      onLast = () => resolve(performance.now());
    });
    const start = performance.now();
    const published = way.publish(message);
    const ms = (await arrived) - start;
    await published;
    // What subscribers do after they have a message is not the next one's time.
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    return ms;
  };
}

async function overBridge(openOne: () => Promise<Bridge>, parts: AsyncDisposableStack): Promise<Way> {
  const build = newId("bld");
  const open = async () => parts.adopt(await openOne(), (bridge) => bridge.close());
  const publisher = await open();
  return {
    publish: (message) => publisher.publish(build, message),
    async subscribe(told, signal) {
      const bridge = await open();
      void (async () => {
        for await (const _ of bridge.subscribe(build, { after: 0, signal })) told();
      })();
    },
  };
}

/** One stream, and a blocking read after the other by each reader. */
async function overStreams(url: string, parts: AsyncDisposableStack): Promise<Way> {
  const open = async () => parts.adopt(await createClient({ url }).connect(), (client) => client.destroy());
  const publisher = await open();
  const stream = "bench";
  return {
    publish: (message) => publisher.xAdd(stream, "*", { body: JSON.stringify(message) }),
    async subscribe(told, signal) {
      const client = await open();
      const read = async () => {
        for (let id = "0"; !signal.aborted; ) {
          const [answer] = (await client.xRead({ key: stream, id }, { BLOCK: 0, COUNT: 16 })) ?? [];
          for (const entry of answer?.messages ?? []) {
            id = entry.id;
            told();
          }
        }
      };
      read().catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    },
  };
}

function messageOf(round: number): OutgoingMessage {
  const payload = { phase: "build", text: "x".repeat(200) };
  return { topic: "progress", key: `message-${round}`, from: "host", payload };
}
