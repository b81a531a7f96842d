import { z } from "zod";
import type { Message, ModelRequest, Part, ToolDefinition } from "../conversation.ts";
import { freeTextSchema, freeTextTools, inputAsJson } from "../free-text.ts";
import { byType, jsonObject, parseRequest, partsOrText } from "../parse.ts";
import { imageAddress, imageAt, joinTexts, mergeTurns, partsOf, textsOf } from "../turns.ts";

const content = partsOrText(
  byType({
    text: { text: z.string() },
    refusal: { refusal: z.string() },
    image_url: { image_url: z.object({ url: z.string() }) },
  }),
  "text",
).nullish();

const toolCall = z.object({
  id: z.string(),
  type: z.literal("function").default("function"),
  function: z.object({ name: z.string(), arguments: z.string().default("") }),
});

const message = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer", "user"]), content }),
  z.object({
    role: z.literal("assistant"),
    content,
    reasoning_content: z.string().nullish(),
    tool_calls: z.array(toolCall).nullish(),
  }),
  z.object({ role: z.literal("tool"), tool_call_id: z.string(), content }),
]);

const tool = byType({
  function: {
    function: z.object({ name: z.string(), description: z.string().nullish(), parameters: jsonObject.nullish() }),
  },
});

const requestSchema = z.object({
  model: z.string().min(1),
  messages: z.array(message),
  tools: z.array(tool).nullish(),
  tool_choice: z
    .union([z.enum(["auto", "none", "required"]), z.object({ function: z.object({ name: z.string() }) })])
    .nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().nullish(),
  stop: z.preprocess((stop) => (typeof stop === "string" ? [stop] : stop), z.array(z.string()).nullish()),
  stream: z.boolean().nullish(),
  response_format: byType({
    json_schema: { json_schema: z.object({ name: z.string().default("answer"), schema: jsonObject.default({}) }) },
  }).nullish(),
});

type WireMessage = z.output<typeof message>;

export function readRequest(body: unknown): ModelRequest {
  const request = parseRequest(requestSchema, body);
  const choice = request.tool_choice ?? "auto";
  return {
    model: request.model,
    system: joinTexts(request.messages.filter(isSystem).map((one) => textOf(one.content))),
    messages: mergeTurns(request.messages.filter((one) => !isSystem(one)).map(readMessage)),
    tools: (request.tools ?? []).flatMap((tool) => (tool === undefined ? [] : [readTool(tool)])),
    toolChoice: typeof choice === "string" ? choice : { name: choice.function.name },
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    temperature: request.temperature ?? undefined,
    stopSequences: request.stop ?? [],
    stream: request.stream ?? false,
    answerSchema: request.response_format?.json_schema,
  };
}

function isSystem({ role }: WireMessage): boolean {
  return role === "system" || role === "developer";
}

function readMessage(one: WireMessage): Message {
  switch (one.role) {
    case "tool":
      return {
        role: "user",
        parts: [
          { type: "tool_result", id: one.tool_call_id, text: textOf(one.content), isError: false },
          ...readContent(one.content).filter(({ type }) => type !== "text"),
        ],
      };
    case "assistant":
      return {
        role: "assistant",
        parts: [
          ...(one.reasoning_content ? [{ type: "thinking", text: one.reasoning_content, signature: "" } as const] : []),
          ...readContent(one.content),
          ...(one.tool_calls ?? []).map(
            (call): Part => ({
              type: "tool_call",
              id: call.id,
              name: call.function.name,
              input: call.function.arguments,
            }),
          ),
        ],
      };
    default:
      return { role: "user", parts: readContent(one.content) };
  }
}

function readContent(parts: z.output<typeof content>): Part[] {
  return (parts ?? []).map((part) => {
    if (part.type === "image_url") return imageAt(part.image_url.url);
    return { type: "text", text: part.type === "text" ? part.text : part.refusal };
  });
}

function textOf(parts: z.output<typeof content>): string {
  return textsOf(readContent(parts)).join("\n");
}

function readTool({ function: called }: NonNullable<z.output<typeof tool>>): ToolDefinition {
  const { name, description, parameters } = called;
  return { name, description: description ?? "", schema: parameters ?? { type: "object", properties: {} } };
}

export function writeRequest(request: ModelRequest): Record<string, unknown> {
  const { model, system, tools, toolChoice, maxOutputTokens, temperature, stopSequences, stream, answerSchema } =
    request;
  const freeText = freeTextTools(tools);
  return {
    model,
    messages: [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      ...request.messages.flatMap((one) => (one.role === "user" ? writeUser(one) : writeAssistant(one, freeText))),
    ],
    ...(tools.length === 0 ? {} : { tools: tools.map(writeTool), tool_choice: writeToolChoice(toolChoice) }),
    ...(maxOutputTokens === undefined ? {} : { max_tokens: maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences.length === 0 ? {} : { stop: stopSequences }),
    ...(answerSchema === undefined ? {} : { response_format: { type: "json_schema", json_schema: answerSchema } }),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  };
}

/** Tool results are separate messages, directly after the calls. */
function writeUser({ parts }: Message): object[] {
  const results = partsOf(parts, "tool_result").map(({ id, text }) => ({
    role: "tool",
    tool_call_id: id,
    content: text,
  }));
  const content = parts.flatMap((part): object[] => {
    if (part.type === "text") return [part];
    if (part.type !== "image" && part.type !== "image_url") return [];
    return [{ type: "image_url", image_url: { url: imageAddress(part) } }];
  });
  const [only] = partsOf(parts, "text");
  if (content.length === 0) return results;
  return [...results, { role: "user", content: content.length === 1 && only !== undefined ? only.text : content }];
}

function writeAssistant({ parts }: Message, freeText: ReadonlySet<string>): object[] {
  const text = textsOf(parts);
  const thinking = textsOf(parts, "thinking");
  const calls = partsOf(parts, "tool_call").map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: inputAsJson(call, freeText) },
  }));
  if (text.length + calls.length === 0) return [];
  return [
    {
      role: "assistant",
      content: text.length === 0 ? null : text.join("\n"),
      ...(thinking.length === 0 ? {} : { reasoning_content: thinking.join("\n") }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ];
}

function writeTool({ name, description, schema, freeText }: ToolDefinition): object {
  const parameters = freeText ? freeTextSchema : schema;
  return { type: "function", function: { name, ...(description === "" ? {} : { description }), parameters } };
}

function writeToolChoice(choice: ModelRequest["toolChoice"]): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}
