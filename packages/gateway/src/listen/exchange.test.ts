import { expect, test } from "vitest";
import type { Endpoint } from "../settings/endpoints.ts";
import { ask, startTestGateway, testKey } from "../testing/gateway.ts";
import { speak, testUsage } from "../testing/upstream.ts";

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
});

test("the agent's request goes out with the endpoint's model name and key, and without the run token", async () => {
  await using set = await startTestGateway();
  const body = ask({ metadata: { user_id: "someone" } });
  await set.post("/v1/messages", body, {
    headers: { "anthropic-beta": "one, fast-mode-2026,two", "anthropic-version": "2024-01-01" },
  });
  const [seen] = set.upstream.seen;
  expect(seen?.body).toEqual({ ...body, model: "build-model" });
  expect(Object.keys(seen?.body ?? {})).toEqual(Object.keys(body));
  expect(seen?.headers).toMatchObject({
    "x-api-key": testKey,
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "one,two",
  });
  expect(JSON.stringify(seen?.headers)).not.toContain(set.run.token);
});

test("chat endpoints are asked to count what they stream, and get the key as a bearer token", async () => {
  await using set = await startTestGateway({ dialects: ["chat"] });
  await set.post("/v1/chat/completions", ask({ stream_options: { include_usage: false, other: 1 } }));
  const [seen] = set.upstream.seen;
  expect(seen?.url).toBe("/v1/chat/completions");
  expect(seen?.body["stream_options"]).toEqual({ include_usage: true, other: 1 });
  expect(seen?.headers.authorization).toBe(`Bearer ${testKey}`);
});

test("a whole answer passes through and is settled", async () => {
  await using set = await startTestGateway();
  const { status, text } = await set.post("/v1/messages", ask({ stream: false }));
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ content: [{ type: "text", text: "Hello world" }] });
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
});

const dialectNames = ["anthropic", "chat", "responses"] as const;
const paths = { anthropic: "/v1/messages", chat: "/v1/chat/completions", responses: "/v1/responses" };
const questions = {
  anthropic: {},
  chat: {},
  responses: { messages: undefined, max_tokens: undefined, max_output_tokens: 1000, input: "Say hello." },
};
const pairs = dialectNames.flatMap((from) => dialectNames.filter((to) => to !== from).map((to) => [from, to] as const));

test.each(pairs)("an agent that speaks %s is answered by an endpoint that speaks %s", async (from, to) => {
  await using set = await startTestGateway({ dialects: [to] as Endpoint["dialects"] });
  const streamed = await set.post(paths[from], ask(questions[from]));
  expect(streamed).toMatchObject({ status: 200, broken: false });
  const whole = await set.post(paths[from], ask({ ...questions[from], stream: false }));
  expect(whole).toMatchObject({ status: 200, broken: false });
  expect(whole.text).toContain("Hello world");
  expect(set.upstream.seen.map(({ url }) => url)).toEqual([paths[to], paths[to]]);
  expect(set.upstream.seen[0]?.body["model"]).toBe("build-model");
  expect(JSON.stringify(set.upstream.seen[0]?.body)).toContain("Say hello.");
  // Not every dialect tells cache writes apart from other input.
  expect(set.lines).toMatchObject([
    { end: "complete", estimated: false, usage: { output: 20 } },
    { end: "complete", estimated: false, usage: { output: 20 } },
  ]);
});

test.each(pairs)("a stream for %s that %s cuts or garbles is never a success", async (from, to) => {
  await using set = await startTestGateway({ dialects: [to] as Endpoint["dialects"] });
  set.upstream.behave((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end("data: {nonsense\n\n");
  });
  const { text, broken } = await set.post(paths[from], ask(questions[from]));
  expect(broken).toBe(true);
  expect(text).toContain("invalid_answer");
  expect(set.run.lastResponse()).toMatchObject({ end: "truncated", code: "invalid_answer" });
});

test("a slow reader slows the endpoint, and gets everything", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 1_000_000_000 });
  const piece = "x".repeat(64 * 1024);
  const texts = Array.from({ length: 200 }, () => piece);
  set.upstream.behave(speak({ texts }));
  const { text, broken } = await set.post("/v1/messages", ask({ max_tokens: 1_000_000 }), { slow: true });
  expect(broken).toBe(false);
  expect(text.split(piece)).toHaveLength(201);
});

test("a request is logged without its words, unless the settings say so", async () => {
  for (const logPrompts of [false, true]) {
    await using set = await startTestGateway({ settings: { logPrompts } });
    await set.post("/v1/messages", ask());
    const logged = JSON.stringify(set.lines);
    expect(logged.includes("Say hello.")).toBe(logPrompts);
    expect(logged).not.toContain(testKey);
    expect(logged).not.toContain(set.run.token);
  }
});

test("health counts each provider's requests, ends, tokens and money", async () => {
  await using set = await startTestGateway();
  await set.post("/v1/messages", ask());
  await set.post("/v1/messages", ask());
  expect(set.gateway.health()).toEqual([
    {
      provider: "test",
      requests: 2,
      inFlight: 0,
      ends: { complete: 2, truncated: 0, cut: 0, failed: 0 },
      retries: 0,
      usage: { input: 200, output: 40, cacheRead: 60, cacheWrite: 80 },
      microUsd: 1518,
      lastErrorCode: undefined,
    },
  ]);
});
