import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createClient } from "redis";
import { expect, test, vi } from "vitest";
import { startRedisServer } from "../testing/redis-server.ts";
import { connectRedis } from "./connection.ts";

const quick = { timeout: 60_000, interval: 20 };

const wrong = ["redis://[", "redis://", "redis://user:secret@a/b", "redis://user:100%secret@a"];
test.each(["", "localhost:6379", "http://user:secret@localhost", ...wrong])(
  "%j is no address of a Redis, and is not repeated",
  async (url) => {
    await expect(connectRedis({ url })).rejects.toMatchObject({ code: "invalid_settings" });
    await expect(connectRedis({ url })).rejects.not.toThrow("secret");
  },
);

test.each(["", "a b", "{x}", "x".repeat(65)])("%j is no prefix", async (prefix) => {
  await expect(connectRedis({ url: "redis://localhost", prefix })).rejects.toMatchObject({ code: "invalid_settings" });
});

test("a wrong password is a wrong setting, and is not repeated", async () => {
  await using server = await startRedisServer();
  const operator = await createClient({ url: server.url }).connect();
  await operator.configSet("requirepass", "right");
  operator.destroy();
  for (const url of [server.url, server.url.replace("//", "//:wrong@")]) {
    const refused = connectRedis({ url });
    await expect(refused).rejects.toMatchObject({ code: "invalid_settings" });
    await expect(refused).rejects.not.toThrow("wrong@");
  }
  const connection = await connectRedis({ url: server.url.replace("//", "//:right@") });
  expect(connection.connected).toBe(true);
  await connection.close();
});

test.each<[string, (socket: Socket) => void]>([
  ["hangs up", (socket) => void socket.end()],
  ["speaks another language", (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
])("what %s is no Redis, which is told once", async (_, answer) => {
  let calls = 0;
  const stranger = createServer((socket) => {
    calls += 1;
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  }).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  const warnings: string[] = [];
  const { port } = stranger.address() as AddressInfo;
  const connection = await connectRedis({ url: `redis://me:secret@127.0.0.1:${port}` }, (told) => warnings.push(told));
  await vi.waitFor(() => expect(calls).toBeGreaterThan(3), quick);
  expect(connection.connected).toBe(false);
  await connection.close();
  stranger.close();
  expect(warnings).toEqual([expect.stringMatching(/^REDIS_URL: no Redis answers \(.+\); builds go on/)]);
  expect(warnings.join()).not.toContain("secret");
});

test("a Redis that is lost and comes back is told of each time, and its end is not", async () => {
  await using server = await startRedisServer();
  const warnings: string[] = [];
  const connection = await connectRedis({ url: server.url }, (told) => warnings.push(told));
  const [lost, back] = [expect.stringContaining("no Redis answers"), expect.stringContaining("Redis answers, and")];
  for (const told of [
    [lost, back],
    [lost, back, lost, back],
  ]) {
    await server.kill();
    await vi.waitFor(() => expect(warnings).toEqual(told.slice(0, -1)), quick);
    await server.start("lost");
    await vi.waitFor(() => expect(warnings).toEqual(told), quick);
  }
  await connection.close();
  await server.kill();
  expect(warnings).toHaveLength(4);
});

test("a Redis that was not there at the start is told of when it comes", async () => {
  await using server = await startRedisServer();
  await server.kill();
  const warnings: string[] = [];
  const connection = await connectRedis({ url: server.url }, (told) => warnings.push(told));
  expect(warnings).toEqual([expect.stringContaining("ECONNREFUSED")]);
  await server.start("lost");
  await vi.waitFor(() => expect(warnings).toHaveLength(2), quick);
  expect(connection.connected).toBe(true);
  await connection.close();
});
