import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { SlipwayError } from "@slipway/contract";
import { generateText, jsonSchema, type LanguageModel, Output, streamText, tool } from "ai";
import { expect, test } from "vitest";
import type { ModelEvent, ModelRequest } from "./conversation.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";
import { readStream, writeStream } from "./testing.ts";

const usage = { input: 100, output: 50, cacheRead: 20, cacheWrite: 0 };
const clients: Record<"anthropic" | "chat", (baseURL: string) => LanguageModel> = {
  anthropic: (baseURL) => createAnthropic({ baseURL, apiKey: "token" })("claude-sonnet-4-5"),
  chat: (baseURL) =>
    createOpenAICompatible({
      name: "slipway",
      baseURL,
      apiKey: "token",
      supportsStructuredOutputs: true,
      includeUsage: true,
    })("model"),
};
const pairs = (["anthropic", "chat"] as const).flatMap((client) =>
  (["anthropic", "chat", "responses"] as const).map((endpoint) => [client, endpoint] as const),
);

test.each(pairs)("the client of %s streams text and thinking of an endpoint of %s", async (client, endpoint) => {
  await using served = await serve(client, endpoint, () => [
    { type: "thinking", text: "Hmm. " },
    { type: "text", text: "Hello, " },
    { type: "text", text: 'wörld "🚢"\n' },
  ]);
  const result = streamText({ model: served.model, prompt: "hello" });
  expect(await result.text).toBe('Hello, wörld "🚢"\n');
  expect(await result.reasoningText).toBe("Hmm. ");
  expect(await result.finishReason).toBe("stop");
  expect(await result.usage).toMatchObject({ inputTokens: 120, outputTokens: 50 });
});

test.each(pairs)("the client of %s calls tools that an endpoint of %s asks for", async (client, endpoint) => {
  await using served = await serve(client, endpoint, ({ messages }) =>
    messages.length > 1
      ? [{ type: "text", text: "Done." }]
      : [
          { type: "text", text: "I look." },
          { type: "tool_start", id: "call_1", name: "look" },
          { type: "tool_input", text: '{"at":' },
          { type: "tool_input", text: '"the sea"}' },
          { type: "tool_start", id: "call_2", name: "wait" },
        ],
  );
  const seen: unknown[] = [];
  const execute = (input: unknown) => {
    seen.push(input);
    return "waves";
  };
  const inputSchema = jsonSchema({ type: "object", properties: { at: { type: "string" } } });
  const result = streamText({
    model: served.model,
    instructions: "Be brief.",
    prompt: "look",
    tools: { look: tool({ inputSchema, execute }), wait: tool({ inputSchema, execute }) },
    stopWhen: ({ steps }) => steps.length === 2,
  });
  expect(await result.text).toBe("Done.");
  expect(seen).toEqual([{ at: "the sea" }, {}]);
  expect(served.requests[1]).toMatchObject({
    system: "Be brief.",
    messages: [
      { role: "user", parts: [{ type: "text", text: "look" }] },
      {
        role: "assistant",
        parts: [
          { type: "text", text: "I look." },
          { type: "tool_call", id: "call_1", name: "look", input: '{"at":"the sea"}' },
          { type: "tool_call", id: "call_2", name: "wait", input: "{}" },
        ],
      },
      {
        role: "user",
        parts: [
          { type: "tool_result", id: "call_1", text: "waves" },
          { type: "tool_result", id: "call_2", text: "waves" },
        ],
      },
    ],
  });
});

test.each(pairs)("the client of %s gets an answer by schema from an endpoint of %s", async (client, endpoint) => {
  await using served = await serve(client, endpoint, () => [{ type: "text", text: '{"ships":3}' }]);
  const schema = jsonSchema<{ ships: number }>({
    type: "object",
    properties: { ships: { type: "number" } },
    required: ["ships"],
    additionalProperties: false,
  });
  const { output } = await generateText({ model: served.model, prompt: "count", output: Output.object({ schema }) });
  expect(output).toEqual({ ships: 3 });
  expect(served.requests[0]).toMatchObject({ stream: false, answerSchema: { schema: { required: ["ships"] } } });
});

test.each(["anthropic", "chat"] as const)("the client of %s fails when a stream is broken off", async (client) => {
  await using served = await serve(client, client, () => [
    { type: "text", text: "Some words" },
    { type: "failure", status: 529, message: "busy" },
  ]);
  const errors: unknown[] = [];
  const result = streamText({
    model: served.model,
    prompt: "hello",
    maxRetries: 0,
    onError: ({ error }) => void errors.push(error),
  });
  await result.consumeStream();
  expect(errors).not.toEqual([]);
});

test.each(["anthropic", "chat"] as const)("the client of %s reads our refusals", async (client) => {
  await using served = await serve(client, client, () => {
    throw new SlipwayError("budget_exhausted", "The run has nothing left.");
  });
  await expect(generateText({ model: served.model, prompt: "hello", maxRetries: 0 })).rejects.toMatchObject({
    statusCode: 402,
    message: "The run has nothing left. [budget_exhausted]",
    isRetryable: false,
  });
});

/** A server that speaks the client's dialect and has its answers from an endpoint of another. */
async function serve(
  client: "anthropic" | "chat",
  endpoint: DialectName,
  answer: (request: ModelRequest) => ModelEvent[],
) {
  const dialect = dialects[client];
  const requests: ModelRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const request = dialect.readRequest(JSON.parse(await readText(incoming)));
    requests.push(request);
    try {
      const events = throughEndpoint(dialects[endpoint], request, answered(answer(request)));
      response.writeHead(200, { "content-type": request.stream ? "text/event-stream" : "application/json" });
      if (request.stream) response.end(writeStream(dialect, events, request));
      else response.end(JSON.stringify(dialect.writeResponse(request, events)));
    } catch (error) {
      if (!(error instanceof SlipwayError)) throw error;
      response.writeHead(error.status, { "content-type": "application/json" });
      response.end(JSON.stringify(dialect.writeError(error)));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    model: clients[client](baseURL),
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answered(content: ModelEvent[]): ModelEvent[] {
  const start: ModelEvent = { type: "start", id: "resp_1", model: "model" };
  if (content.at(-1)?.type === "failure") return [start, ...content];
  const reason = content.some(({ type }) => type === "tool_start") ? "tool_call" : "end";
  return [start, ...content, { type: "usage", usage }, { type: "stop", reason }];
}

function throughEndpoint(dialect: Dialect, request: ModelRequest, events: ModelEvent[]): ModelEvent[] {
  const sent = dialect.readRequest(JSON.parse(JSON.stringify(dialect.writeRequest(request))));
  if (!request.stream) return dialect.readResponse(dialect.writeResponse(sent, events), request);
  return readStream(dialect, [new TextEncoder().encode(writeStream(dialect, events, sent))], request);
}
