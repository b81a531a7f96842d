import { expect, test } from "vitest";
import { ask, startTestGateway, testKey } from "./testing/gateway.ts";
import { testUsage } from "./testing/upstream.ts";

test("a stream passes through unchanged, metered and settled by the endpoint's own count", async () => {
  await using set = await startTestGateway();
  const { status, text, broken } = await set.post("/v1/messages?beta=true", ask());
  expect(status).toBe(200);
  expect(broken).toBe(false);
  expect(text).toContain("message_stop");
  // 100 * 3 + 20 * 15 + 30 * 0.3 + 40 * 3.75
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
  expect(set.lines).toMatchObject([
    { end: "complete", usage: testUsage, microUsd: 759, estimated: false, role: "build" },
  ]);
  expect(set.run.lastResponse()).toMatchObject({ end: "complete" });
  const [seen] = set.upstream.seen;
  expect(seen?.body).toEqual(ask({ model: "build-model" }));
  expect(seen?.headers).toMatchObject({ "x-api-key": testKey, "anthropic-version": "2023-06-01" });
  expect(seen?.headers.authorization).toBeUndefined();
});

test("a whole answer passes through and is settled", async () => {
  await using set = await startTestGateway();
  const { status, text } = await set.post("/v1/messages", ask({ stream: false }));
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ content: [{ type: "text", text: "Hello world" }] });
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
});
