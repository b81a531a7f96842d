import { describe, expect, test } from "vitest";
import type { DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";

const names = Object.keys(dialects) as DialectName[];
const png = { type: "base64", media_type: "image/png", data: "AAAA" };

test("a request as Claude Code makes it is read", () => {
  const request = dialects.anthropic.readRequest({
    model: "sonnet",
    max_tokens: 32000,
    stream: true,
    metadata: { user_id: "someone" },
    thinking: { type: "enabled", budget_tokens: 1024 },
    system: [
      { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
      { type: "text", text: "Be brief." },
    ],
    tools: [
      { name: "Bash", description: "Runs a command.", input_schema: { type: "object" }, cache_control: null },
      { type: "web_search_20250305", name: "web_search", max_uses: 5 },
    ],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
    messages: [
      { role: "user", content: "look" },
      {
        role: "user",
        content: [
          { type: "text", text: "here" },
          { type: "document", source: {} },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hmm.", signature: "c2ln" },
          { type: "redacted_thinking", data: "xyz" },
          { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
        ],
      },
      { role: "system", content: "The date has changed." },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            is_error: true,
            content: [
              { type: "text", text: "a" },
              { type: "image", source: png },
              { type: "text", text: "b" },
            ],
          },
          { type: "tool_result", tool_use_id: "toolu_2" },
        ],
      },
    ],
  });
  expect(request).toEqual({
    model: "sonnet",
    system: "You are an agent.\n\nBe brief.\n\nThe date has changed.",
    messages: [
      {
        role: "user",
        parts: [
          { type: "text", text: "look" },
          { type: "text", text: "here" },
        ],
      },
      {
        role: "assistant",
        parts: [
          { type: "thinking", text: "Hmm.", signature: "c2ln" },
          { type: "tool_call", id: "toolu_1", name: "Bash", input: '{"command":"ls"}' },
        ],
      },
      {
        role: "user",
        parts: [
          { type: "tool_result", id: "toolu_1", text: "a\nb", isError: true },
          { type: "image", mediaType: "image/png", base64: "AAAA" },
          { type: "tool_result", id: "toolu_2", text: "", isError: false },
        ],
      },
    ],
    tools: [{ name: "Bash", description: "Runs a command.", schema: { type: "object" } }],
    toolChoice: "required",
    maxOutputTokens: 32000,
    temperature: undefined,
    stopSequences: [],
    stream: true,
    answerSchema: undefined,
  });
  const sent = dialects.anthropic.writeRequest(request)["messages"] as { content: { type: string }[] }[];
  expect(sent.at(-1)?.content.map(({ type }) => type)).toEqual(["tool_result", "tool_result", "image"]);
});

/** As Codex makes it: free-text tools, groups of tools, the developer's words among the messages. */
const codexRequest = {
  model: "gpt",
  instructions: "You are an agent.",
  stream: true,
  store: false,
  include: ["reasoning.encrypted_content"],
  parallel_tool_calls: true,
  prompt_cache_key: "key",
  tool_choice: "auto",
  tools: [
    { type: "function", name: "exec_command", description: "Runs.", strict: false, parameters: { type: "object" } },
    {
      type: "custom",
      name: "apply_patch",
      description: "Edits files.",
      format: { type: "grammar", syntax: "lark", definition: "start: begin" },
    },
    {
      type: "namespace",
      name: "mcp__team",
      description: "Tools.",
      tools: [{ type: "function", name: "note", description: "Notes.", parameters: { type: "object" } }],
    },
    { type: "web_search", external_web_access: false },
  ],
  input: [
    { type: "message", role: "developer", content: [{ type: "input_text", text: "Permissions." }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hmm." }], encrypted_content: "seal" },
    { type: "function_call", id: "fc_1", call_id: "call_1", namespace: "mcp__team", name: "note", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: [{ type: "input_text", text: "noted" }] },
    { type: "custom_tool_call", call_id: "call_2", name: "apply_patch", input: "*** Begin\n", status: "completed" },
    { type: "custom_tool_call_output", call_id: "call_2", output: "done" },
    { type: "web_search_call", id: "ws_1" },
    { role: "assistant", content: [{ type: "output_text", text: "So far." }] },
    { role: "user", content: "more" },
  ],
};

test("a request as Codex makes it is read", () => {
  const request = dialects.responses.readRequest(codexRequest);
  expect(request).toMatchObject({
    system: "You are an agent.\n\nPermissions.",
    tools: [
      { name: "exec_command" },
      { name: "apply_patch", freeText: true, description: expect.stringContaining("start: begin") },
      { name: "mcp__team__note", grouped: { namespace: "mcp__team", name: "note" } },
    ],
  });
  expect(request.messages.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)])).toEqual([
    ["user", "text"],
    ["assistant", "thinking", "tool_call"],
    ["user", "tool_result"],
    ["assistant", "tool_call"],
    ["user", "tool_result"],
    ["assistant", "text"],
    ["user", "text"],
  ]);
});

test.each(["anthropic", "chat"] as const)("a free-text tool of Codex works with an endpoint of %s", (name) => {
  const [client, endpoint] = [dialects.responses, dialects[name]];
  const request = client.readRequest(codexRequest);
  const sent = endpoint.readRequest(JSON.parse(JSON.stringify(endpoint.writeRequest(request))));
  expect(sent.tools[1]).toMatchObject({ name: "apply_patch", schema: { required: ["input"] } });
  expect(sent.messages[3]?.parts).toEqual([
    { type: "tool_call", id: "call_2", name: "apply_patch", input: JSON.stringify({ input: "*** Begin\n" }) },
  ]);

  const answer = endpoint.streamWriter(sent);
  const stream = [
    answer.write({ type: "start", id: "resp_1", model: "m" }),
    answer.write({ type: "tool_start", id: "call_3", name: "apply_patch" }),
    answer.write({ type: "tool_input", text: '{"input":"*** Be' }),
    answer.write({ type: "tool_input", text: 'gin\\n"}' }),
    answer.write({ type: "tool_start", id: "call_4", name: "mcp__team__note" }),
    answer.write({ type: "stop", reason: "tool_call" }),
  ].join("");
  const reader = endpoint.streamReader(request);
  const writer = client.streamWriter(request);
  const received = [...reader.push(new TextEncoder().encode(stream))].map((event) => writer.write(event));
  const events = received.join("").matchAll(/^data: (.*)$/gm);
  const done = [...events]
    .map(([, json = ""]) => JSON.parse(json))
    .filter(({ type }) => type === "response.output_item.done");
  expect(done.map(({ item }) => item)).toMatchObject([
    { type: "custom_tool_call", call_id: "call_3", name: "apply_patch", input: "*** Begin\n", status: "completed" },
    { type: "function_call", call_id: "call_4", namespace: "mcp__team", name: "note", arguments: "{}" },
  ]);
});

test("what one dialect can not say is left out of the next", () => {
  const request = dialects.chat.readRequest({
    model: "m",
    temperature: 1.8,
    stop: "END",
    max_completion_tokens: 7,
    tool_choice: { type: "function", function: { name: "a" } },
    tools: [
      { type: "function", function: { name: "a" } },
      { type: "custom", custom: { name: "b" } },
    ],
    messages: [
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] },
      {
        role: "assistant",
        content: null,
        reasoning_content: "Hmm.",
        tool_calls: [{ id: "call:1", type: "function", function: { name: "a", arguments: "not json" } }],
      },
      { role: "tool", tool_call_id: "call:1", content: "" },
    ],
  });
  expect(dialects.anthropic.writeRequest(request)).toEqual({
    model: "m",
    max_tokens: 7,
    temperature: 1,
    stop_sequences: ["END"],
    stream: false,
    tools: [{ name: "a", input_schema: { type: "object", properties: {} } }],
    tool_choice: { type: "tool", name: "a" },
    messages: [
      { role: "user", content: [{ type: "image", source: png }] },
      { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "a", input: { input: "not json" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "" }] },
    ],
  });
});

describe("a bad request names its field", () => {
  const table: [DialectName, unknown, string][] = [
    ["anthropic", { messages: [] }, "model"],
    ["anthropic", { model: "m", messages: "hello" }, "messages"],
    ["anthropic", { model: "m", messages: [{ role: "robot", content: "x" }] }, "messages.0.role"],
    [
      "anthropic",
      { model: "m", messages: [{ role: "user", content: [{ type: "text" }] }] },
      "messages.0.content.0.text",
    ],
    [
      "anthropic",
      { model: "m", messages: [{ role: "user", content: [{ type: "tool_result", content: "x" }] }] },
      "messages.0.content.0.tool_use_id",
    ],
    ["anthropic", { model: "m", messages: [], max_tokens: -1 }, "max_tokens"],
    ["chat", { model: "m", messages: [{ role: "tool", content: "x" }] }, "messages.0.tool_call_id"],
    ["chat", { model: "m", messages: [{ role: "robot", content: "x" }] }, "messages.0.role"],
    ["chat", { model: "m", messages: [], tools: [{ type: "function" }] }, "tools.0.function"],
    ["chat", { model: "", messages: [] }, "model"],
    ["responses", { model: "m" }, "input"],
    ["responses", { model: "m", input: [{ type: "function_call", name: "x" }] }, "input.0.call_id"],
    ["responses", { model: "m", input: "x", previous_response_id: "resp_1" }, "previous_response_id"],
  ];
  test.each(table)("%s %j", (name, body, field) => {
    expect(() => dialects[name].readRequest(body)).toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringContaining(`${field}:`) }),
    );
  });

  test.each(names)("and %s takes nothing for a request that is none", (name) => {
    for (const body of [null, undefined, "text", 5, [], {}]) {
      expect(() => dialects[name].readRequest(body)).toThrow(expect.objectContaining({ code: "invalid_request" }));
    }
  });

  test("and never says what was in it", () => {
    const body = {
      model: "m",
      messages: [{ role: "secret prompt", content: { secret: "prompt" } }],
      input: { secret: 1 },
    };
    for (const name of names) {
      expect(() => dialects[name].readRequest(body)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining("secret") }),
      );
    }
  });
});
