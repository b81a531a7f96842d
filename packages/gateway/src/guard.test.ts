import { expect, test } from "vitest";
import { guardBody } from "./guard.ts";
import { ask, startTestGateway } from "./testing/gateway.ts";

const part = (content: unknown) => ({ messages: [{ role: "user", content: [content] }] });

test.each([
  ["anthropic", { mcp_servers: [{ url: "https://evil.example" }] }],
  ["anthropic", { container: "someone's" }],
  ["anthropic", part({ type: "image", source: { type: "url", url: "https://evil.example/?data" } })],
  ["anthropic", part({ type: "document", source: { type: "file", file_id: "f" } })],
  ["anthropic", part({ type: "tool_result", content: [{ type: "image", source: { type: "url", url: "https://e" } }] })],
  ["anthropic", { system: [{ type: "document", source: { type: "url", url: "https://evil.example" } }] }],
  [
    "anthropic",
    part({
      type: "document",
      source: { type: "content", content: [{ type: "image", source: { type: "url", url: "https://evil.example" } }] },
    }),
  ],
  ["chat", { n: 8 }],
  ["chat", part({ type: "video_url", video_url: { url: "https://evil.example" } })],
  ["chat", part({ type: "file", file: { file_data: "https://evil.example" } })],
  ["chat", part({ type: "image_url", image_url: { url: "https://evil.example" } })],
  ["chat", part({ type: "file", file: { file_id: "f" } })],
  ["responses", { background: true }],
  ["responses", { previous_response_id: "resp_1" }],
  ["responses", { conversation: "conv_1" }],
  ["responses", { prompt: { id: "pmpt_1" } }],
  ["responses", { input: [{ type: "item_reference", id: "msg_1" }] }],
  ["responses", { input: [{ role: "user", content: [{ type: "input_image", image_url: "https://evil.example" }] }] }],
  ["responses", { input: [{ role: "user", content: [{ type: "input_file", file_url: "https://evil.example" }] }] }],
  ["google", { cachedContent: "cachedContents/1" }],
  ["google", { generationConfig: { candidateCount: 8 } }],
  ["google", { contents: [{ role: "user", parts: [{ fileData: { fileUri: "https://evil.example" } }] }] }],
  ["google", { systemInstruction: { parts: [{ fileData: { fileUri: "files/1" } }] } }],
  [
    "google",
    { contents: [{ parts: [{ functionResponse: { name: "a", parts: [{ fileData: { fileUri: "gs://evil" } }] } }] }] },
  ],
] as const)("%s: %j reaches past the run and is refused", (dialect, body) => {
  expect(() => guardBody(dialect, structuredClone(body))).toThrow(expect.objectContaining({ code: "invalid_request" }));
});

test("tools that run at the endpoint are taken out, tools of the agent stay", () => {
  const body = {
    tools: [
      { name: "Write", input_schema: {} },
      { type: "custom", name: "patch" },
      { type: "function", name: "run" },
      { type: "bash_20250124", name: "bash" },
      { type: "web_search_20250305", name: "web_search" },
      { type: "web_search", external_web_access: false },
      { type: "code_interpreter" },
      { type: "mcp", server_url: "https://evil.example" },
    ],
  };
  guardBody("responses", body);
  expect(body.tools).toHaveLength(4);
});

test("tools of Google that run at the endpoint are taken out", () => {
  const functionDeclarations = [{ name: "run" }];
  const body = { tools: [{ functionDeclarations, googleSearch: {} }, { codeExecution: {} }, { urlContext: {} }] };
  guardBody("google", body);
  expect(JSON.stringify(body)).toBe(JSON.stringify({ tools: [{ functionDeclarations }, {}, {}] }));
});

test("a group of tools holds only tools of the agent", () => {
  const grouped = [{ type: "function", name: "run" }, { type: "web_search" }];
  const body = { tools: [{ type: "namespace", name: "team", tools: grouped }] };
  guardBody("responses", body);
  expect(body.tools[0]?.tools).toEqual([{ type: "function", name: "run" }]);
});

test("of a chat request only what is known to keep to its model and price passes", () => {
  const kept = { model: "m", messages: [], max_tokens: 10, temperature: 0 };
  const body = { ...kept, models: ["dearer"], provider: { order: ["x"] }, plugins: [{ id: "web" }], prediction: {} };
  guardBody("chat", body);
  expect(body).toEqual(kept);
});

test("a limit that the endpoint does not read is none", () => {
  const body: Record<string, unknown> = { max_tokens: 5, max_output_tokens: 7, max_completion_tokens: 9 };
  guardBody("responses", body);
  expect(body).toEqual({ max_output_tokens: 7, store: false });
});

test("content that is nested without end is refused", () => {
  let content: unknown = "deep";
  for (let depth = 0; depth < 1000; depth++) content = [{ type: "tool_result", content }];
  expect(() => guardBody("anthropic", { messages: [{ role: "user", content }] })).toThrow(
    expect.objectContaining({ code: "invalid_request" }),
  );
});

test("what raises the price or keeps answers at the endpoint is taken out", () => {
  const body: Record<string, unknown> = {
    service_tier: "priority",
    speed: "fast",
    store: true,
    background: false,
    n: 1,
  };
  guardBody("responses", body);
  expect(body).toEqual({ store: false, background: false, n: 1 });
});

test("caches are kept for as long as the price table says", () => {
  const marked = () => ({ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } });
  const body = { system: [marked()], tools: [{ ...marked(), type: "custom" }], ...part(marked()) };
  guardBody("anthropic", body);
  expect(JSON.stringify(body)).not.toContain("ttl");
  expect(JSON.stringify(body).match(/"ephemeral"/g)).toHaveLength(3);
});

test("content that is all in the request passes", () => {
  const data = "data:image/png;base64,AAAA";
  for (const body of [
    part({ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }),
    part({ type: "image_url", image_url: { url: data } }),
    part({ type: "tool_use", id: "1", name: "fetch", input: { url: "https://example.com" } }),
    { input: [{ role: "user", content: [{ type: "input_image", image_url: data }] }] },
    { input: "Hello" },
    { messages: [{ role: "user", content: "Hello" }] },
  ]) {
    expect(() => guardBody("anthropic", body)).not.toThrow();
  }
});

test("a refused request is never sent", async () => {
  await using set = await startTestGateway();
  const { status } = await set.post("/v1/messages", ask({ mcp_servers: [{ url: "https://evil.example" }] }));
  expect(status).toBe(400);
  expect(set.upstream.seen).toHaveLength(0);
});
