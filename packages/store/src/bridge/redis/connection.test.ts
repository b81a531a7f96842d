import { createClient } from "redis";
import { expect, test } from "vitest";
import { startRedisServer } from "../testing/redis-server.ts";
import { connectRedis } from "./connection.ts";

test.each(["", "localhost:6379", "http://user:secret@localhost", "redis://[", "redis://"])(
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
