import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { newId, type OutgoingMessage } from "@slipway/contract";
import type { Bridge } from "@slipway/engine";
import { openDatabase } from "@slipway/store";
import { openBridge } from "@slipway/store/bridge";
import { startPostgres } from "@slipway/store/testing/postgres";
import { createClient } from "redis";
import { percentile, type Report, ratio } from "./measure.ts";
import { startRedis } from "./redis.ts";

const subscribers = 20;
const messages = 2000;
const warmUp = 200;

/** Brings messages to every subscriber. */
interface Way {
  publish(message: OutgoingMessage): Promise<unknown>;
  /** Starts a subscriber that tells of each message when it has it. */
  subscribe(told: () => void, signal: AbortSignal): Promise<void>;
}

/**
 * From a publish until the last of 20 subscribers has the message, 99th percentile of each, against a plain stream of Redis
 * with a connection for each reader. `bridge_p99_vs_redis` are two servers on one Postgres and one Redis: the one publishes,
 * the other has the subscribers. `bridge_one_server_p99_vs_redis` is a server with a SQLite file, which is the only one on
 * it and has all subscribers.
 */
export async function bridgeVersusRedis(report: Report): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const { url } = parts.use(await startRedis());
  const postgres = parts.use(await startPostgres({ isDurable: true }));
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-bridge-"));
  parts.defer(() => rmSync(directory, { recursive: true }));
  const clock = { now: Date.now };
  const close = (bridge: Bridge) => bridge.close();
  const openServer = async (database: string) =>
    parts.adopt(
      await openBridge({ redis: { url }, clock, database: parts.use(openDatabase({ url: database })) }),
      close,
    );
  const server = await openServer(`file:${join(directory, "bridge.db")}`);
  const shared = await postgres.createDatabase();
  const other = await openServer(shared);
  const end = new AbortController();
  const ways = {
    streams: await startRace(await overStreams(url, parts), end.signal),
    server: await startRace(overBridge(server, server), end.signal),
    servers: await startRace(overBridge(await openServer(shared), other), end.signal),
  };
  parts.defer(() => end.abort());
  const times = { streams: [] as number[], server: [] as number[], servers: [] as number[] };
  for (let round = -warmUp; round < messages; round++) {
    for (const way of ["streams", "server", "servers"] as const) {
      const ms = await ways[way](messageOf(round));
      if (round >= 0) times[way].push(ms);
    }
  }
  const compare = (name: string, ours: readonly number[]) => {
    const measured = { ours: percentile(ours, 0.99), baseline: percentile(times.streams, 0.99), n: messages };
    ratio(report, name, { atMost: 2 }, measured);
  };
  compare("bridge_p99_vs_redis", times.servers);
  compare("bridge_one_server_p99_vs_redis", times.server);
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

function overBridge(publisher: Bridge, subscriber: Bridge): Way {
  const build = newId("bld");
  return {
    publish: (message) => publisher.publish(build, message),
    async subscribe(told, signal) {
      void (async () => {
        for await (const _ of subscriber.subscribe(build, { after: 0, signal })) told();
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
