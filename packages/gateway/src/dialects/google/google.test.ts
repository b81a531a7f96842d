import { SlipwayError } from "@slipway/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { askedAt, dialects } from "../index.ts";
import { cutAt, plainRequest, readStream, response, writeStream } from "../testing.ts";
import { partsOf } from "../turns.ts";
import { gather } from "../whole.ts";
import { google } from "./index.ts";

const ask = (changes: object = {}) => ({ model: "build", stream: true, contents: [], ...changes });
const readTools = (...declarations: object[]) =>
  google.readRequest(ask({ tools: [{ functionDeclarations: declarations }] })).tools;

test("a request as Gemini CLI makes it is read", () => {
  const request = google.readRequest(
    ask({
      systemInstruction: { role: "user", parts: [{ text: "You are an agent." }, { text: "Be brief." }] },
      tools: [
        {
          functionDeclarations: [
            { name: "write_file", description: "Writes.", parametersJsonSchema: { type: "object", required: ["a"] } },
          ],
        },
        { googleSearch: {} },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["write_file"] } },
      generationConfig: {
        temperature: 1,
        topP: 0.95,
        topK: 64,
        maxOutputTokens: 1000,
        stopSequences: ["END"],
        thinkingConfig: { includeThoughts: true, thinkingBudget: -1 },
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object" },
      },
      contents: [
        { role: "user", parts: [{ text: "look" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }] },
        {
          role: "model",
          parts: [
            { text: "Hmm.", thought: true },
            { text: "I write.", thoughtSignature: "c2ln" },
            { functionCall: { id: "write_file__call_1", name: "write_file", args: { a: 1 } } },
            { functionCall: { id: "write_file__call_2", name: "write_file" } },
          ],
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "write_file__call_1", name: "write_file", response: { output: "done" } } },
            { functionResponse: { id: "write_file__call_2", name: "write_file", response: { error: "no room" } } },
          ],
        },
        { role: "user", parts: [{ text: "go on" }] },
      ],
    }),
  );
  expect(request).toEqual({
    model: "build",
    system: "You are an agent.\n\nBe brief.",
    messages: [
      {
        role: "user",
        parts: [
          { type: "text", text: "look" },
          { type: "image", mediaType: "image/png", base64: "AAAA" },
        ],
      },
      {
        role: "assistant",
        parts: [
          { type: "thinking", text: "Hmm.", signature: "" },
          { type: "text", text: "I write." },
          { type: "tool_call", id: "call_1", name: "write_file", input: '{"a":1}' },
          { type: "tool_call", id: "call_2", name: "write_file", input: "{}" },
        ],
      },
      {
        role: "user",
        parts: [
          { type: "tool_result", id: "call_1", text: "done", isError: false },
          { type: "tool_result", id: "call_2", text: "no room", isError: true },
          { type: "text", text: "go on" },
        ],
      },
    ],
    tools: [{ name: "write_file", description: "Writes.", schema: { type: "object", required: ["a"] } }],
    toolChoice: { name: "write_file" },
    maxOutputTokens: 1000,
    temperature: 1,
    stopSequences: ["END"],
    stream: true,
    answerSchema: { name: "answer", schema: { type: "object" } },
  });
});

test("calls and results without ids are paired by name and order", () => {
  const call = (name: string) => ({ functionCall: { name, args: {} } });
  const result = (name: string, output: unknown) => ({ functionResponse: { name, response: { output } } });
  const { messages } = google.readRequest(
    ask({
      contents: [
        { role: "model", parts: [call("look"), call("wait"), call("look")] },
        { role: "user", parts: [result("wait", "w"), result("look", "l1"), result("look", { deep: 1 })] },
        { role: "model", parts: [call("look")] },
        { role: "user", parts: [result("look", "l3")] },
      ],
    }),
  );
  expect(messages[1]?.parts).toMatchObject([
    { id: "call_1", text: "w" },
    { id: "call_0", text: "l1" },
    { id: "call_2", text: '{"output":{"deep":1}}' },
  ]);
  expect(messages[2]?.parts).toMatchObject([{ id: "call_3" }]);
  expect(messages[3]?.parts).toMatchObject([{ id: "call_3", text: "l3" }]);
});

test("images in a tool's result follow it", () => {
  const parts = [{ inlineData: { mimeType: "image/png", data: "AAAA" } }];
  const functionResponse = { id: "1", name: "see", response: { output: "seen" }, parts };
  const { messages } = google.readRequest(ask({ contents: [{ role: "user", parts: [{ functionResponse }] }] }));
  expect(messages[0]?.parts.map(({ type }) => type)).toEqual(["tool_result", "image"]);
});

test("Google's schemas become JSON schemas", () => {
  const type = { type: "STRING", enum: ["STRING"] };
  const parameters = { type: "OBJECT", properties: { type, list: { type: "ARRAY", items: { type: "INTEGER" } } } };
  expect(readTools({ name: "a", parameters })[0]?.schema).toEqual({
    type: "object",
    properties: {
      type: { type: "string", enum: ["STRING"] },
      list: { type: "array", items: { type: "integer" } },
    },
  });
  expect(readTools({ name: "a" })[0]?.schema).toEqual({ type: "object", properties: {} });
});

test.each([
  [undefined, undefined, "auto"],
  ["AUTO", undefined, "auto"],
  ["VALIDATED", ["a"], "auto"],
  ["NONE", undefined, "none"],
  ["ANY", undefined, "required"],
  ["ANY", ["a", "b"], "required"],
  ["ANY", ["a"], { name: "a" }],
])("the mode %s for %j calls tools as %j", (mode, allowedFunctionNames, choice) => {
  const toolConfig = { functionCallingConfig: { mode, allowedFunctionNames } };
  expect(google.readRequest(ask({ toolConfig })).toolChoice).toEqual(choice);
});

test.each([
  ["contents", { contents: "hello" }],
  ["contents.0.parts.0.functionCall.name", { contents: [{ parts: [{ functionCall: {} }] }] }],
  ["generationConfig.maxOutputTokens", { generationConfig: { maxOutputTokens: 0 } }],
  ["tools.0.functionDeclarations", { tools: [{ functionDeclarations: {} }] }],
])("a request with an odd %s is refused by that name", (field, changes) => {
  expect(() => google.readRequest(ask(changes))).toThrow(
    expect.objectContaining({ code: "invalid_request", message: expect.stringContaining(field) }),
  );
});

test("the path names the model and what is wanted of it", () => {
  expect(askedAt("/v1beta/models/build:generateContent")).toEqual({
    dialect: google,
    wants: "answer",
    fields: { model: "build", stream: false },
  });
  expect(askedAt("/v1/models/ollama/qwen3:8b:streamGenerateContent")).toMatchObject({
    fields: { model: "ollama/qwen3:8b", stream: true },
  });
  expect(askedAt("/v1beta/models/build:countTokens")).toMatchObject({ wants: "count", fields: { model: "build" } });
  for (const path of ["/v1beta/models/build:embedContent", "/v1beta/models/:generateContent", "/v1beta/models"]) {
    expect(askedAt(path)).toBeUndefined();
  }
});

describe.each(Object.values(dialects))("an answer of an endpoint of $name", (endpoint) => {
  test("reaches a client of google, streamed", () => {
    fc.assert(
      fc.property(response, fc.array(fc.nat(), { maxLength: 10 }), (events, places) => {
        const bytes = new TextEncoder().encode(writeStream(endpoint, events));
        const arrived = readStream(endpoint, cutAt(bytes, places));
        const { said, failure } = readBack(writeStream(google, arrived));
        const { text, thinking, ...others } = saidIn(events);
        expect(said).toMatchObject({ text, thinking });
        if (hasEnd(events)) expect({ ...said, failure }).toEqual({ text, thinking, ...others, failure: undefined });
        else expect(failure).toBeDefined();
      }),
    );
  });

  test("reaches a client of google, whole", () => {
    fc.assert(
      fc.property(response, (events) => {
        const arrived = endpoint.readResponse(endpoint.writeResponse(plainRequest, events));
        expect(saidBy([google.writeResponse(plainRequest, arrived)])).toEqual(saidIn(events));
      }),
    );
  });
});

test.each<[StopReason, string]>([
  ["end", "STOP"],
  ["tool_call", "STOP"],
  ["stop_sequence", "STOP"],
  ["max_tokens", "MAX_TOKENS"],
  ["refusal", "SAFETY"],
])("an answer that ends by %s says so", (reason, finishReason) => {
  const events: ModelEvent[] = [
    { type: "start", id: "1", model: "m" },
    { type: "stop", reason },
  ];
  expect(google.writeResponse(plainRequest, events)).toMatchObject({ candidates: [{ finishReason }] });
});

test("a stream tells a refusal and an answer without its end as failures, since clients take both for success", () => {
  const writer = google.streamWriter(plainRequest);
  writer.write({ type: "tool_start", id: "1", name: "write_file" });
  expect(JSON.parse(writer.write({ type: "stop", reason: "max_tokens" }))).toMatchObject({
    error: { code: 502, message: expect.stringContaining("[stream_truncated]"), status: "UNAVAILABLE" },
  });
  expect(JSON.parse(writer.write({ type: "stop", reason: "refusal" }))).toMatchObject({
    error: { code: 422, message: expect.stringContaining("[answer_refused]"), status: "INVALID_ARGUMENT" },
  });
  expect(JSON.parse(writer.write({ type: "failure", status: 529, message: "busy" }))).toEqual({
    error: { code: 529, message: "busy", status: "UNAVAILABLE" },
  });
});

test.each([
  ["invalid_request", 400, "INVALID_ARGUMENT"],
  ["run_token_invalid", 401, "UNAUTHENTICATED"],
  ["model_key_refused", 401, "UNAUTHENTICATED"],
  ["budget_exhausted", 402, "FAILED_PRECONDITION"],
  ["role_forbidden", 403, "PERMISSION_DENIED"],
  ["unknown_model", 404, "NOT_FOUND"],
  ["model_rate_limited", 429, "RESOURCE_EXHAUSTED"],
  ["internal", 500, "INTERNAL"],
  ["model_timeout", 504, "DEADLINE_EXCEEDED"],
  ["model_overloaded", 529, "UNAVAILABLE"],
] as const)("the error %s in Google's words", (code, status, word) => {
  const error = { code: status, message: `It went wrong. [${code}]`, status: word };
  expect(google.writeError(new SlipwayError(code, "It went wrong."))).toEqual({ error });
  expect(JSON.parse(google.writeStreamError(new SlipwayError(code, "It went wrong.")))).toEqual({ error });
});

test("a call with what is no JSON object is an object all the same", () => {
  const events: ModelEvent[] = [
    { type: "start", id: "1", model: "m" },
    { type: "tool_start", id: "1", name: "run" },
    { type: "tool_input", text: "ls" },
    { type: "stop", reason: "tool_call" },
  ];
  expect(readBack(writeStream(google, events)).said.calls).toEqual([{ id: "1", name: "run", args: { input: "ls" } }]);
});

interface Said {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly unknown[];
  readonly usage: unknown;
}

const partSchema = z.object({
  text: z.string().default(""),
  thought: z.boolean().default(false),
  functionCall: z.unknown().optional(),
});
const chunkSchema = z.object({
  candidates: z.tuple([z.object({ content: z.object({ parts: z.array(partSchema) }) })]),
  usageMetadata: z.unknown().optional(),
});

/** As Google's client reads a stream: events, and what is no event breaks it off. */
function readBack(stream: string): { readonly said: Said; readonly failure: unknown } {
  const pieces = stream.split("\n\n").filter((piece) => piece !== "");
  const last = pieces.at(-1) ?? "";
  const events = pieces.filter((piece) => piece.startsWith("data: "));
  return {
    said: saidBy(events.map((event) => JSON.parse(event.slice("data: ".length)))),
    failure: last.startsWith("data: ") ? undefined : JSON.parse(last),
  };
}

function saidBy(bodies: readonly unknown[]): Said {
  const chunks = bodies.map((body) => chunkSchema.parse(body));
  const parts = chunks.flatMap(({ candidates: [candidate] }) => candidate.content.parts);
  const textOf = (wanted: boolean) => parts.map(({ text, thought }) => (thought === wanted ? text : "")).join("");
  return {
    text: textOf(false),
    thinking: textOf(true),
    calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
    usage: chunks.at(-1)?.usageMetadata,
  };
}

function saidIn(events: readonly ModelEvent[]): Said {
  const { parts, usage } = gather(plainRequest, events);
  const joined = (type: "text" | "thinking") =>
    partsOf(parts, type)
      .map(({ text }) => text)
      .join("");
  const promptTokenCount = usage.input + usage.cacheRead + usage.cacheWrite;
  return {
    text: joined("text"),
    thinking: joined("thinking"),
    calls: partsOf(parts, "tool_call").map(({ id, name, input }) => ({ id, name, args: JSON.parse(input || "{}") })),
    usage: {
      promptTokenCount,
      candidatesTokenCount: usage.output,
      cachedContentTokenCount: usage.cacheRead,
      totalTokenCount: promptTokenCount + usage.output,
    },
  };
}

function hasEnd(events: readonly ModelEvent[]): boolean {
  const stop = events.find((event) => event.type === "stop");
  return stop?.reason === "end" || stop?.reason === "tool_call";
}
