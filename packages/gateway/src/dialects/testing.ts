import fc from "fast-check";
import type { Message, ModelEvent, ModelRequest, Part, StopReason } from "./conversation.ts";
import type { AgentDialect, Dialect } from "./dialect.ts";

/** Texts with what trips readers up: quotes, line ends, the words that meters look for, characters of many bytes. */
const hostileWords = [
  '"usage":{"prompt_tokens":9,"completion_tokens":9}',
  '"finish_reason":"stop"',
  "data: [DONE]\n\n",
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  '{"type":"response.completed","response":{}}',
  '"error"',
  "\r\n\r\n",
  "\\",
  "naïve 🚢 船",
];
const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
export const text = fc.oneof(
  words,
  fc.constantFrom(...hostileWords),
  fc.tuple(words, fc.constantFrom(...hostileWords)).map((both) => both.join("")),
);
const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
const id = fc.stringMatching(/^call_[a-z0-9]{4,8}$/);
const jsonText = fc.dictionary(name, fc.oneof(text, fc.integer(), fc.boolean())).map((value) => JSON.stringify(value));

const thinking = fc.record({
  type: fc.constant("thinking" as const),
  text,
  signature: fc.stringMatching(/^[A-Za-z0-9+/]{4,20}$/),
});
const textPart = fc.record({ type: fc.constant("text" as const), text });
const toolCall = fc.record({ type: fc.constant("tool_call" as const), id, name, input: jsonText });
const toolResult = fc.record({ type: fc.constant("tool_result" as const), id, text, isError: fc.boolean() });
const image: fc.Arbitrary<Part> = fc.oneof(
  fc.record({
    type: fc.constant("image" as const),
    mediaType: fc.constantFrom("image/png", "image/jpeg"),
    base64: fc.base64String({ minLength: 4 }),
  }),
  fc.record({ type: fc.constant("image_url" as const), url: fc.webUrl() }),
);

const userMessage = fc
  .tuple(fc.array(toolResult, { maxLength: 2 }), fc.array(fc.oneof(textPart, image), { minLength: 1, maxLength: 3 }))
  .map(([results, parts]): Message => ({ role: "user", parts: [...results, ...parts] }));
const assistantMessage = fc.tuple(fc.option(thinking), textPart, fc.array(toolCall, { maxLength: 2 })).map(
  ([thought, words, calls]): Message => ({
    role: "assistant",
    parts: [...(thought === null ? [] : [thought]), words, ...calls],
  }),
);

const tool = fc.record({
  name,
  description: text,
  schema: fc.constant({ type: "object", properties: { a: { type: "string" } } }),
});

export const modelRequest: fc.Arbitrary<ModelRequest> = fc.record({
  model: name,
  system: fc.oneof(fc.constant(""), text),
  messages: fc
    .array(fc.tuple(userMessage, assistantMessage), { minLength: 1, maxLength: 3 })
    .map((turns) => turns.flat()),
  tools: fc.uniqueArray(tool, { minLength: 1, maxLength: 3, selector: (one) => one.name }),
  toolChoice: fc.oneof(fc.constantFrom("auto" as const, "none" as const, "required" as const), fc.record({ name })),
  maxOutputTokens: fc.integer({ min: 1, max: 100_000 }),
  temperature: fc.option(fc.double({ min: 0, max: 1, noNaN: true }).map(Math.abs), { nil: undefined }),
  stopSequences: fc.array(text, { maxLength: 2 }),
  stream: fc.boolean(),
  answerSchema: fc.option(fc.constant({ name: "answer", schema: { type: "object" } }), { nil: undefined }),
});

const count = fc.integer({ min: 0, max: 1_000_000 });
const usage = fc.record({ input: count, output: count, cacheRead: count, cacheWrite: count });

/** A response that every dialect can say. */
export const response: fc.Arbitrary<ModelEvent[]> = fc
  .record({
    id: fc.stringMatching(/^resp_[a-z0-9]{4,8}$/),
    model: name,
    thinking: fc.array(text, { maxLength: 2 }),
    text: fc.array(text, { maxLength: 4 }),
    calls: fc.array(fc.record({ id, name, input: fc.tuple(jsonText, fc.integer({ min: 0, max: 20 })) }), {
      maxLength: 3,
    }),
    usage,
    cut: fc.constantFrom<StopReason | undefined>("max_tokens", "refusal", undefined),
  })
  .map(({ id: response, model, calls, cut, ...content }) => [
    { type: "start", id: response, model },
    ...content.thinking.map((one) => ({ type: "thinking", text: one }) as const),
    ...content.text.map((one) => ({ type: "text", text: one }) as const),
    ...calls.flatMap(({ id: call, name: called, input: [json, at] }): ModelEvent[] => [
      { type: "tool_start", id: call, name: called },
      ...[json.slice(0, at), json.slice(at)]
        .filter((piece) => piece !== "")
        .map((piece) => ({ type: "tool_input", text: piece }) as const),
    ]),
    { type: "usage", usage: content.usage },
    { type: "stop", reason: cut ?? (calls.length > 0 ? "tool_call" : "end") },
  ]);

export const plainRequest: ModelRequest = {
  model: "model",
  system: "",
  messages: [{ role: "user", parts: [{ type: "text", text: "hello" }] }],
  tools: [],
  toolChoice: "auto",
  maxOutputTokens: undefined,
  temperature: undefined,
  stopSequences: [],
  stream: true,
  answerSchema: undefined,
};

export function writeStream(dialect: AgentDialect, events: readonly ModelEvent[], request = plainRequest): string {
  const writer = dialect.streamWriter(request);
  return events.map((event) => writer.write(event)).join("");
}

export function readStream(dialect: Dialect, chunks: readonly Uint8Array[], request?: ModelRequest): ModelEvent[] {
  const reader = dialect.streamReader(request);
  return chunks.flatMap((chunk) => [...reader.push(chunk)]);
}

/** A stream in pieces that end at the given places, wherever these are. */
export function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1))), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

/** Neighbours of one kind as one, and of the counts only the last: how a text is cut into events means nothing. */
export function coalesce(events: readonly ModelEvent[]): ModelEvent[] {
  const merged: ModelEvent[] = [];
  const lastUsage = events.findLastIndex(({ type }) => type === "usage");
  for (const [index, event] of events.entries()) {
    const last = merged.at(-1);
    if (event.type === "usage" && index !== lastUsage) continue;
    if (event.type === last?.type && "text" in event && "text" in last)
      merged[merged.length - 1] = { ...last, ...event, text: last.text + event.text };
    else merged.push(event);
  }
  return merged;
}
