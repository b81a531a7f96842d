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
 * `bridge_p99_vs_redis`, `bridge_sql_p99_vs_redis`: from a publish until the last of 20 subscribers has the message, 99th
 * percentile of each, with all of it in Redis, and with a database as the truth.
 */
export async function bridgeVersusRedis(report: Report): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const { url } = parts.use(await startRedis());
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-bridge-"));
  parts.defer(() => rmSync(directory, { recursive: true }));
  const clock = { now: Date.now };
  const file = `file:${join(directory, "bridge.db")}`;
  const openSql = () => openBridge({ redis: { url }, clock, database: parts.use(openDatabase({ url: file })) });
  const end = new AbortController();
  const [redis, sql, streams] = [
    await startRace(await overBridge(() => openRedisBridge({ url, clock }), parts), end.signal),
    await startRace(await overBridge(openSql, parts), end.signal),
    await startRace(await overStreams(url, parts), end.signal),
  ];
  parts.defer(() => end.abort());
  const times = { redis: [] as number[], sql: [] as number[], streams: [] as number[] };
  for (let round = -warmUp; round < messages; round++) {
    const message = messageOf(round);
    const taken = { redis: await redis(message), sql: await sql(message), streams: await streams(message) };
    if (round < 0) continue;
    for (const way of ["redis", "sql", "streams"] as const) times[way].push(taken[way]);
  }
  const baseline = percentile(times.streams, 0.99);
  for (const [name, values, bound] of [
    ["bridge_p99_vs_redis", times.redis, { atMost: 2 }],
    ["bridge_sql_p99_vs_redis", times.sql, {}],
  ] as const) {
    ratio(report, name, bound, { ours: percentile(values, 0.99), baseline, n: messages });
  }
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
