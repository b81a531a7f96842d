import { describe, expect, test } from "vitest";
import type { ModelEvent, StopReason } from "./conversation.ts";
import type { DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";
import { coalesce, plainRequest, readStream, writeStream } from "./testing.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const sse = (...events: unknown[]) =>
  encode(events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join(""));
const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "c",
  model: "m",
  choices: [{ index: 0, delta, finish_reason }],
});
const reasonOf = (events: readonly ModelEvent[]) => events.find((event) => event.type === "stop")?.reason;

describe("an endpoint's reason to stop", () => {
  const anthropic: [string, StopReason][] = [
    ["end_turn", "end"],
    ["tool_use", "tool_call"],
    ["max_tokens", "max_tokens"],
    ["stop_sequence", "stop_sequence"],
    ["refusal", "refusal"],
    ["model_context_window_exceeded", "max_tokens"],
    ["a new one", "end"],
  ];
  test.each(anthropic)("anthropic: %s", (stop_reason, reason) => {
    const stream = sse({ type: "message_delta", delta: { stop_reason } }, { type: "message_stop" });
    expect(reasonOf(readStream(dialects.anthropic, [stream]))).toBe(reason);
  });

  const chat: [string, object[], StopReason][] = [
    ["stop", [chunk({ content: "a" }), chunk({}, "stop")], "end"],
    ["length", [chunk({}, "length")], "max_tokens"],
    ["content_filter", [chunk({}, "content_filter")], "refusal"],
    ["a refusal's text", [chunk({ refusal: "I can not." }), chunk({}, "stop")], "refusal"],
    [
      "stop after a call",
      [chunk({ tool_calls: [{ index: 0, id: "1", function: { name: "a" } }] }), chunk({}, "stop")],
      "tool_call",
    ],
  ];
  test.each(chat)("chat: %s", (_name, chunks, reason) => {
    expect(reasonOf(readStream(dialects.chat, [sse(...chunks, "[DONE]")]))).toBe(reason);
  });

  const message = (part: object) => ({ type: "message", content: [part] });
  const responses: [string, object, StopReason][] = [
    ["completed", { status: "completed", output: [message({ type: "output_text", text: "a" })] }, "end"],
    ["a refusal", { status: "completed", output: [message({ type: "refusal", refusal: "I can not." })] }, "refusal"],
    ["filtered", { status: "incomplete", output: [], incomplete_details: { reason: "content_filter" } }, "refusal"],
    [
      "too long",
      { status: "incomplete", output: [], incomplete_details: { reason: "max_output_tokens" } },
      "max_tokens",
    ],
  ];
  test.each(responses)("responses: %s", (_name, body, reason) => {
    expect(reasonOf(dialects.responses.readResponse({ id: "r", model: "m", ...body }))).toBe(reason);
  });
});

test("a refusal is never an ordinary end, in any dialect", () => {
  for (const dialect of Object.values(dialects)) {
    const events: ModelEvent[] = [
      { type: "start", id: "r", model: "m" },
      { type: "stop", reason: "refusal" },
    ];
    expect(reasonOf(readStream(dialect, [encode(writeStream(dialect, events))]))).toBe("refusal");
    expect(reasonOf(dialect.readResponse(dialect.writeResponse(plainRequest, events)))).toBe("refusal");
  }
});

test("blocks that only the vendor knows are left out with all they hold", () => {
  const delta = (index: number, fields: object) => ({ type: "content_block_delta", index, delta: fields });
  const stream = sse(
    { type: "message_start", message: { id: "m", model: "m", usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "server_tool_use", id: "s", name: "web_search" } },
    delta(0, { type: "input_json_delta", partial_json: "{}" }),
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    delta(1, { type: "citations_delta", citation: {} }),
    delta(1, { type: "text_delta", text: "Hello" }),
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  );
  expect(coalesce(readStream(dialects.anthropic, [stream]))).toEqual([
    { type: "start", id: "m", model: "m" },
    { type: "text", text: "Hello" },
    { type: "usage", usage: { input: 5, output: 9, cacheRead: 0, cacheWrite: 0 } },
    { type: "stop", reason: "end" },
  ]);
});

test("a signed thought keeps its signature where the dialect has one", () => {
  const events: ModelEvent[] = [
    { type: "start", id: "r", model: "m" },
    { type: "thinking", text: "Hmm.", signature: "c2ln" },
    { type: "thinking", text: "So.", signature: "c2lo" },
    { type: "text", text: "Yes." },
    { type: "stop", reason: "end" },
  ];
  for (const name of ["anthropic", "responses"] as const) {
    const dialect = dialects[name];
    const thoughts = [
      { type: "thinking", thinking: "Hmm.", signature: "c2ln" },
      { type: "thinking", thinking: "So.", signature: "c2lo" },
    ];
    const read = readStream(dialect, [encode(writeStream(dialect, events))]);
    expect(dialects.anthropic.writeResponse(plainRequest, read)["content"]).toEqual([
      ...thoughts,
      { type: "text", text: "Yes." },
    ]);
  }
});

test("items that an endpoint sends only when they are done are read", () => {
  const call = { type: "function_call", call_id: "call_1", name: "a", arguments: '{"b":1}' };
  const stream = sse(
    { type: "response.created", response: { id: "r", model: "m" } },
    { type: "response.output_item.done", item: { type: "message", content: [{ type: "output_text", text: "Hello" }] } },
    { type: "response.output_item.done", item: call },
    { type: "response.completed", response: { id: "r", usage: { input_tokens: 1, output_tokens: 2 } } },
  );
  expect(readStream(dialects.responses, [stream])).toMatchObject([
    { type: "start" },
    { type: "text", text: "Hello" },
    { type: "tool_start", id: "call_1", name: "a" },
    { type: "tool_input", text: '{"b":1}' },
    { type: "usage" },
    { type: "stop", reason: "tool_call" },
  ]);
});

test("calls without ids get ids of their own", () => {
  const call = (index: number) => chunk({ tool_calls: [{ index, function: { name: "a", arguments: "{}" } }] });
  const events = readStream(dialects.chat, [sse(call(0), call(1), chunk({}, "tool_calls"), "[DONE]")]);
  const ids = events.flatMap((event) => (event.type === "tool_start" ? [event.id] : []));
  expect(new Set(ids).size).toBe(2);
});

describe("pieces that belong to nothing are an invalid answer", () => {
  const table: [DialectName, object][] = [
    ["anthropic", { type: "content_block_delta", index: 3, delta: { type: "text_delta", text: "a" } }],
    ["chat", chunk({ tool_calls: [{ index: 3, function: { arguments: "a" } }] })],
  ];
  test.each(table)("%s", (name, event) => {
    expect(() => readStream(dialects[name], [sse(event)])).toThrow(expect.objectContaining({ code: "invalid_answer" }));
  });

  test("responses", () => {
    const added = { type: "response.output_item.added", output_index: 0, item: { type: "message", content: [] } };
    const delta = { type: "response.output_text.delta", output_index: 1, delta: "a" };
    expect(() => readStream(dialects.responses, [sse(added, delta)])).toThrow(
      expect.objectContaining({ code: "invalid_answer" }),
    );
  });
});

test("counts of the cache are not counted as input", () => {
  const prompt = { cached_tokens: 80, cache_write_tokens: 5 };
  const chat = sse(
    { ...chunk({}, "stop"), usage: { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: prompt } },
    "[DONE]",
  );
  const usage = { input: 15, output: 7, cacheRead: 80, cacheWrite: 5 };
  expect(readStream(dialects.chat, [chat])).toContainEqual({ type: "usage", usage });
  const response = { usage: { input_tokens: 100, output_tokens: 7, input_tokens_details: prompt } };
  expect(readStream(dialects.responses, [sse({ type: "response.completed", response })])).toContainEqual({
    type: "usage",
    usage,
  });
});

test("the stream of responses has every event that its clients wait for, in order", () => {
  const request = { ...plainRequest, tools: [{ name: "patch", description: "", schema: {}, freeText: true }] };
  const stream = writeStream(
    dialects.responses,
    [
      { type: "start", id: "r", model: "m" },
      { type: "thinking", text: "Hmm." },
      { type: "text", text: "Hello" },
      { type: "tool_start", id: "call_1", name: "run" },
      { type: "tool_input", text: "{}" },
      { type: "tool_start", id: "call_2", name: "patch" },
      { type: "tool_input", text: "***" },
      { type: "stop", reason: "tool_call" },
    ],
    request,
  );
  const types = [...stream.matchAll(/^event: response\.(.*)$/gm)].map(([, type]) => type);
  expect(types).toEqual([
    ...["created", "in_progress"],
    ...["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"],
    ...["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"],
    ...["output_item.added", "content_part.added", "output_text.delta"],
    ...["output_text.done", "content_part.done", "output_item.done"],
    ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    ...["output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"],
    "completed",
  ]);
  const numbers = [...stream.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
  expect(numbers).toEqual(numbers.map((_, index) => index));
});
