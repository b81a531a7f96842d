import { z } from "zod";
import type { Message, ModelRequest, Part, ToolDefinition } from "../conversation.ts";
import { freeTextSchema, freeTextTools, inputAsJson, toolInput } from "../free-text.ts";
import { byType, jsonObject, parseRequest, partsOrText } from "../parse.ts";
import { joinTexts, mergeTurns } from "../turns.ts";

const text = { text: z.string() };
const image = {
  source: byType({ base64: { media_type: z.string(), data: z.string() }, url: { url: z.string() } }),
};
/** The blocks of a model's answer. */
export const answerBlocks = {
  text,
  thinking: { thinking: z.string(), signature: z.string().default("") },
  tool_use: { id: z.string(), name: z.string(), input: z.unknown() },
};
const block = byType({
  ...answerBlocks,
  image,
  tool_result: {
    tool_use_id: z.string(),
    content: partsOrText(byType({ text, image }), "text").nullish(),
    is_error: z.boolean().nullish(),
  },
});
const tool = z.object({ name: z.string(), description: z.string().nullish(), input_schema: jsonObject.nullish() });
const answerFormat = z.object({ type: z.string(), schema: jsonObject.nullish() }).nullish();

const requestSchema = z.object({
  model: z.string().min(1),
  system: partsOrText(byType({ text }), "text").nullish(),
  messages: z.array(z.object({ role: z.enum(["user", "assistant", "system"]), content: partsOrText(block, "text") })),
  tools: z.array(tool).nullish(),
  tool_choice: z.object({ type: z.enum(["auto", "any", "tool", "none"]), name: z.string().nullish() }).nullish(),
  max_tokens: z.int().min(1).nullish(),
  temperature: z.number().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  stream: z.boolean().nullish(),
  output_config: z.object({ format: answerFormat }).nullish(),
  output_format: answerFormat,
});

type Block = NonNullable<z.output<typeof block>>;

export function readRequest(body: unknown): ModelRequest {
  const request = parseRequest(requestSchema, body);
  const inline = request.messages.filter(({ role }) => role === "system").flatMap(({ content }) => content);
  const schema = (request.output_config?.format ?? request.output_format)?.schema;
  return {
    model: request.model,
    system: joinTexts([...(request.system ?? []), ...inline].map((part) => ("text" in part ? part.text : ""))),
    messages: mergeTurns(
      request.messages.flatMap(({ role, content }) =>
        role === "system" ? [] : [{ role, parts: content.flatMap(readBlock) }],
      ),
    ),
    tools: (request.tools ?? []).flatMap(readTool),
    toolChoice: readToolChoice(request.tool_choice),
    maxOutputTokens: request.max_tokens ?? undefined,
    temperature: request.temperature ?? undefined,
    stopSequences: request.stop_sequences ?? [],
    stream: request.stream ?? false,
    answerSchema: schema == null ? undefined : { name: "answer", schema },
  };
}

/** Images in a tool result follow it: a neutral result is text. */
export function readBlock(part: Block): Part[] {
  switch (part.type) {
    case "text":
      return [part];
    case "thinking":
      return [{ type: "thinking", text: part.thinking, signature: part.signature }];
    case "image":
      return readImage(part);
    case "tool_use":
      return [{ type: "tool_call", id: part.id, name: part.name, input: JSON.stringify(part.input ?? {}) }];
    case "tool_result": {
      const content = part.content ?? [];
      const words = content.flatMap((one) => (one.type === "text" ? [one.text] : []));
      return [
        { type: "tool_result", id: part.tool_use_id, text: words.join("\n"), isError: part.is_error ?? false },
        ...content.flatMap((one) => (one.type === "image" ? readImage(one) : [])),
      ];
    }
  }
}

function readImage({ source }: Extract<Block, { type: "image" }>): Part[] {
  if (source === undefined) return [];
  return source.type === "url"
    ? [{ type: "image_url", url: source.url }]
    : [{ type: "image", mediaType: source.media_type, base64: source.data }];
}

/** A tool without a schema is one that the vendor runs. */
function readTool({ name, description, input_schema }: z.output<typeof tool>): ToolDefinition[] {
  return input_schema == null ? [] : [{ name, description: description ?? "", schema: input_schema }];
}

function readToolChoice(choice: z.output<typeof requestSchema>["tool_choice"]): ModelRequest["toolChoice"] {
  if (choice == null || choice.type === "auto") return "auto";
  if (choice.type === "tool" && choice.name != null) return { name: choice.name };
  return choice.type === "none" ? "none" : "required";
}

/** The dialect requires a number. Every current model can write this much. */
const defaultMaxTokens = 32_000;

export function writeRequest(request: ModelRequest): Record<string, unknown> {
  const { model, system, tools, toolChoice, maxOutputTokens, temperature, stopSequences, stream, answerSchema } =
    request;
  const freeText = freeTextTools(tools);
  return {
    model,
    max_tokens: maxOutputTokens ?? defaultMaxTokens,
    ...(system === "" ? {} : { system }),
    messages: request.messages.flatMap((message) => writeMessage(message, freeText)),
    ...(tools.length === 0 ? {} : { tools: tools.map(writeTool), tool_choice: writeToolChoice(toolChoice) }),
    ...(temperature === undefined ? {} : { temperature: Math.min(temperature, 1) }),
    ...(stopSequences.length === 0 ? {} : { stop_sequences: stopSequences }),
    ...(answerSchema === undefined
      ? {}
      : { output_config: { format: { type: "json_schema", schema: answerSchema.schema } } }),
    stream,
  };
}

/** Tool results come first. Empty texts and empty messages are not allowed. */
function writeMessage({ role, parts }: Message, freeText: ReadonlySet<string>): object[] {
  const isResult = (part: Part) => part.type === "tool_result";
  const ordered = [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))];
  const content = ordered.flatMap((part) => writePart(part, freeText));
  return content.length === 0 ? [] : [{ role, content }];
}

function writePart(part: Part, freeText: ReadonlySet<string>): object[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [part];
    case "thinking":
      // The endpoint refuses thinking without its signature.
      return part.signature === "" ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
    case "image":
      return [{ type: "image", source: { type: "base64", media_type: part.mediaType, data: part.base64 } }];
    case "image_url":
      return [{ type: "image", source: { type: "url", url: part.url } }];
    case "tool_call":
      return [
        { type: "tool_use", id: toolId(part.id), name: part.name, input: toolInput(inputAsJson(part, freeText)) },
      ];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: toolId(part.id),
          content: part.text,
          ...(part.isError ? { is_error: true } : {}),
        },
      ];
  }
}

/** Replaces characters in other vendors' ids that this vendor refuses. */
export function toolId(id: string): string {
  return id.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
}

function writeTool({ name, description, schema, freeText }: ToolDefinition): object {
  return { name, ...(description === "" ? {} : { description }), input_schema: freeText ? freeTextSchema : schema };
}

function writeToolChoice(choice: ModelRequest["toolChoice"]): object {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}
