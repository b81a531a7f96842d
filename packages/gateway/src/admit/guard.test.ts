import fc from "fast-check";
import { expect, test } from "vitest";
import type { AgentDialectName } from "../dialects/dialect.ts";
import { ask, startTestGateway } from "../testing/gateway.ts";
import { guardBody } from "./guard.ts";

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
  ["responses", { input: [{ id: "msg_1" }] }],
  ["responses", { instructions: [{ role: "developer", content: [{ type: "input_file", file_id: "f" }] }] }],
  ["responses", { instructions: [{ type: "item_reference", id: "msg_1" }] }],
  ["responses", { input: [{ type: "code_interpreter_call", container_id: "c" }] }],
  ["responses", { tool_choice: { type: "mcp", server_label: "evil" } }],
  ["responses", { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] } }],
  ["chat", { tool_choice: { type: "web_search" } }],
  ["chat", { tool_choice: "web_search" }],
  ["chat", { functions: { name: "web_search" } }],
  ["chat", { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }],
  ["chat", part({ type: "input_audio", input_audio: { data: "https://evil.example" } })],
  ["chat", part({ type: "video", video: ["https://evil.example/1.jpg"] })],
  ["chat", part([{ type: "image_url", image_url: { url: "https://evil.example" } }])],
  ["chat", part({ type: "text", text: "a", extra: { image_url: { url: "https://evil.example" } } })],
  ["anthropic", part({ type: "container_upload", file_id: "f" })],
  ["anthropic", { tools: { type: "web_search_20250305", name: "web_search" } }],
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

const jsonSchema = { type: "object", properties: { url: { type: "string" } } };
const chatTool = { type: "function", function: { name: "run", description: "Runs.", parameters: jsonSchema } };
const plainTool = { name: "run", description: "Runs.", parameters: jsonSchema };
const ownTools: Readonly<Record<AgentDialectName, readonly object[]>> = {
  anthropic: [
    { name: "Write", description: "Writes.", input_schema: jsonSchema, defer_loading: true },
    { type: "custom", name: "Read", input_schema: jsonSchema, cache_control: { type: "ephemeral" } },
    { type: "bash_20250124", name: "bash" },
    { type: "computer_20250124", name: "computer", display_width_px: 10, display_height_px: 10 },
  ],
  chat: [chatTool, { type: "custom", custom: { name: "patch", format: { type: "text" } } }],
  responses: [
    { type: "function", ...plainTool, strict: false },
    { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "start: /a/" } },
    { type: "local_shell" },
    { type: "apply_patch" },
    { type: "namespace", name: "team", description: "Ours.", tools: [{ type: "function", ...plainTool }] },
  ],
  google: [{ functionDeclarations: [plainTool, { name: "read", parametersJsonSchema: jsonSchema }] }],
};
const hostedTools = [
  { type: "web_search_20250305", name: "web_search" },
  { type: "web_search", external_web_access: false },
  { type: "web_search_preview", name: "web", parameters: {}, input_schema: {} },
  { type: "code_interpreter", container: { type: "auto" } },
  { type: "code_execution_20250825", name: "code_execution" },
  { type: "mcp", server_url: "https://evil.example" },
  { type: "mcp_toolset", mcp_server_name: "evil" },
  { type: "shell", environment: { type: "container_auto" } },
  { type: "builtin_function", function: { name: "$web_search" } },
  { type: ["function"], name: "run", parameters: {} },
  // Without a type, or with that of a tool whose shape it has not.
  { name: "web_search" },
  { type: null, server_label: "evil", server_url: "https://evil.example" },
  { google_search: {} },
  { googleSearch: {} },
  { codeExecution: {} },
  { urlContext: {} },
  { function: { name: "run", parameters: {} } },
  { type: "function", server_url: "https://evil.example" },
  { type: "custom", url: "https://evil.example" },
  ...[{}, [], [{ type: "web_search" }], "web_search", 1, null],
];
const dialectNames = ["anthropic", "chat", "responses", "google"] as const;

test.each(dialectNames)("%s: tools of the agent stay as they are, all others are taken out", (dialect) => {
  expect(toolsLeft(dialect, [...hostedTools, ...ownTools[dialect], ...hostedTools])).toEqual(ownTools[dialect]);
});

test.each(dialectNames)("%s: whatever tools are like, only known fields of known shapes are left", (dialect) => {
  const words = ["function", "custom", "web_search", "mcp", "namespace", "run", "bash_20250124", null];
  const fields = ["type", "name", "function", "custom", "tools", "functionDeclarations", "server_url", "googleSearch"];
  const one = fc.object({
    key: fc.constantFrom(...fields),
    values: [fc.constantFrom(...words)],
    maxDepth: 3,
    maxKeys: 6,
  });
  const tool = fc.oneof(
    one,
    one.map((fields) => ({ name: "run", input_schema: {}, ...fields })),
    one.map((fields) => ({ type: "function", name: "run", function: { name: "run", ...fields }, ...fields })),
    one.map((fields) => ({ type: "namespace", name: "team", tools: [{ type: "function", name: "run", ...fields }] })),
    one.map((fields) => ({ functionDeclarations: [{ name: "run", ...fields }], ...fields })),
  );
  fc.assert(
    fc.property(fc.array(tool, { maxLength: 4 }), (tools) => {
      const left = toolsLeft(dialect, tools);
      expect(JSON.stringify(left)).not.toMatch(/server_url|googleSearch|"type":"(web_search|mcp)"/);
      expect(toolsLeft(dialect, left)).toEqual(left);
    }),
  );
});

test("what is added to a tool of the agent is taken out", () => {
  const added = { server_url: "https://evil.example", allowed_callers: ["code_execution_20250825"] };
  for (const dialect of dialectNames) {
    const tools = ownTools[dialect].map((tool) => ({ ...tool, ...added }));
    expect(toolsLeft(dialect, tools)).toEqual(ownTools[dialect]);
  }
});

test("tools that come as content are held to the same", () => {
  const tools = [...ownTools.responses, ...hostedTools];
  const body = { input: [{ type: "additional_tools", tools }] };
  guardBody("responses", body);
  expect(body.input[0]?.tools).toEqual(ownTools.responses);
});

test("a group of tools holds only tools of the agent, and no groups", () => {
  const own = { type: "function", name: "run" };
  const grouped = [
    own,
    { type: "web_search" },
    { name: "web_search" },
    { type: "namespace", name: "in", tools: [own] },
  ];
  expect(toolsLeft("responses", [{ type: "namespace", name: "team", tools: grouped }])).toEqual([
    { type: "namespace", name: "team", tools: [own] },
  ]);
});

test("functions of the chat dialect that is past are tools, too", () => {
  const body = { functions: [{ ...plainTool, server_url: "https://evil.example" }, { type: "web_search" }] };
  guardBody("chat", body);
  expect(body.functions).toEqual([plainTool]);
});

test.each([
  ["anthropic", ["model", "messages", "system", "thinking", "output_config", "metadata"]],
  ["responses", ["model", "input", "instructions", "reasoning", "text", "prompt_cache_key"]],
] as const)("%s: of a request's fields only those pass that are known to reach nothing else", (dialect, fields) => {
  const kept = Object.fromEntries(fields.map((field) => [field, "x"]));
  const body: Record<string, unknown> = { ...kept, models: ["dearer"], plugins: [{ id: "web" }], fallbacks: [{}] };
  guardBody(dialect, body);
  delete body["store"];
  expect(body).toEqual(kept);
});

test("of what an endpoint does to a conversation only what makes it shorter for nothing stays", () => {
  const edits = [{ type: "clear_thinking_20251015" }, { type: "compact_20260112" }];
  const body: Record<string, unknown> = { context_management: { edits } };
  guardBody("anthropic", body);
  expect(body).toEqual({ context_management: { edits: [{ type: "clear_thinking_20251015" }] } });
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

test.each([100, 1000, 20_000])("what is nested %i levels deep is refused, wherever it is", (levels) => {
  const nest = (field: string, extra: object) => {
    let value: object = { type: "text" };
    for (let depth = 0; depth < levels; depth++) value = { ...extra, [field]: [value] };
    return value;
  };
  const deep = () => [
    { tools: [nest("tools", { type: "namespace", name: "a" })] },
    { messages: [{ role: "user", content: [nest("content", { type: "tool_result" })] }] },
    { messages: [{ role: "assistant", content: [{ type: "tool_use", input: nest("a", {}) }] }] },
    { system: [nest("content", {})], messages: [] },
    { metadata: nest("a", {}) },
    { tool_choice: nest("tools", { type: "allowed_tools" }) },
  ];
  for (const dialect of dialectNames) {
    for (const body of deep()) {
      expect(() => guardBody(dialect, body)).toThrow(expect.objectContaining({ code: "invalid_request" }));
    }
  }
});

test("what is nested too deeply is answered with 400, in every dialect, and never sent", async () => {
  await using set = await startTestGateway();
  const tools = `${'{"type":"namespace","name":"a","tools":['.repeat(20_000)}${"]}".repeat(20_000)}`;
  const paths = ["/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/responses"];
  for (const path of [...paths, "/v1beta/models/build:generateContent", "/v1beta/models/build:countTokens"]) {
    const { status, text } = await set.post(path, `${JSON.stringify(ask({})).slice(0, -1)},"tools":[${tools}]}`);
    expect(status).toBe(400);
    expect(text).toContain("nested too deeply");
  }
  expect(set.upstream.seen).toHaveLength(0);
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
  expect(body).toEqual({ store: false });
});

test("caches are kept for as long as the price table says", () => {
  const marked = () => ({ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } });
  const body = {
    system: [marked()],
    tools: [{ ...marked(), type: "custom", name: "a", input_schema: {} }],
    ...part(marked()),
  };
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
    part({ type: "document", source: { type: "text", media_type: "text/plain", data: "https://example.com is ours" } }),
    part({
      type: "search_result",
      source: "https://example.com",
      title: "Ours",
      content: [{ type: "text", text: "a" }],
    }),
    part({ type: "text", text: "https://example.com", citations: null }),
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

function toolsLeft(dialect: AgentDialectName, tools: readonly unknown[]): readonly unknown[] {
  const body = { tools: structuredClone(tools) };
  guardBody(dialect, body);
  return body.tools;
}
