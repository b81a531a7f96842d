import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import type { Message, ModelRequest, Part } from "../conversation.ts";
import { freeTextTools } from "../free-text.ts";
import { byType, jsonObject, parseRequest, partsOrText } from "../parse.ts";
import { imageAddress, imageAt, joinTexts, mergeTurns, partsOf, textsOf } from "../turns.ts";
import {
  readCall,
  readTool,
  readToolChoice,
  toolChoiceSchema,
  toolSchema,
  writeTool,
  writeToolChoice,
} from "./tools.ts";

const text = { text: z.string() };
const content = partsOrText(
  byType({
    input_text: text,
    output_text: text,
    text,
    refusal: { refusal: z.string() },
    input_image: { image_url: z.string().nullish() },
  }),
  "input_text",
);

const call = { call_id: z.string(), name: z.string(), namespace: z.string().nullish() };
const output = { call_id: z.string(), output: content };
const item = byType({
  message: { role: z.enum(["user", "assistant", "system", "developer"]), content },
  function_call: { ...call, arguments: z.string() },
  custom_tool_call: { ...call, input: z.string() },
  function_call_output: output,
  custom_tool_call_output: output,
  reasoning: { summary: z.array(z.object(text)).default([]), encrypted_content: z.string().nullish() },
  additional_tools: { tools: z.array(toolSchema) },
});

const requestSchema = z.object({
  model: z.string().min(1),
  instructions: z.string().nullish(),
  input: z.preprocess(
    (input) => (typeof input === "string" ? [{ role: "user", content: input }] : input),
    z.array(z.preprocess(withType, item)),
  ),
  tools: z.array(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  temperature: z.number().nullish(),
  stream: z.boolean().nullish(),
  text: z
    .object({
      format: byType({
        json_schema: { name: z.string().default("answer"), schema: jsonObject.default({}) },
      }).nullish(),
    })
    .nullish(),
  previous_response_id: z.string().nullish(),
});

/** A message may lack its type. */
function withType(value: unknown): unknown {
  return typeof value === "object" && value !== null && "role" in value ? { type: "message", ...value } : value;
}

type Item = NonNullable<z.output<typeof item>>;

export function readRequest(body: unknown): ModelRequest {
  const request = parseRequest(requestSchema, body);
  if (request.previous_response_id != null) {
    throw new SlipwayError("invalid_request", "previous_response_id: responses are not stored; send the whole input.");
  }
  const items = request.input.filter((one) => one !== undefined);
  const format = request.text?.format;
  return {
    model: request.model,
    system: joinTexts([request.instructions ?? "", ...items.filter(isSystem).map((one) => textOf(one.content))]),
    messages: mergeTurns(items.flatMap(readItem)),
    tools: [
      ...(request.tools ?? []),
      ...items.flatMap((one) => (one.type === "additional_tools" ? one.tools : [])),
    ].flatMap(readTool),
    toolChoice: readToolChoice(request.tool_choice ?? "auto"),
    maxOutputTokens: request.max_output_tokens ?? undefined,
    temperature: request.temperature ?? undefined,
    stopSequences: [],
    stream: request.stream ?? false,
    answerSchema: format == null ? undefined : { name: format.name, schema: format.schema },
  };
}

function isSystem(one: Item): one is Extract<Item, { type: "message" }> {
  return one.type === "message" && (one.role === "system" || one.role === "developer");
}

function readItem(one: Item): Message[] {
  switch (one.type) {
    case "message":
      if (one.role !== "user" && one.role !== "assistant") return [];
      return [{ role: one.role, parts: readContent(one.content) }];
    case "function_call":
    case "custom_tool_call":
      return [{ role: "assistant", parts: [readCall(one)] }];
    case "function_call_output":
    case "custom_tool_call_output": {
      const result: Part = { type: "tool_result", id: one.call_id, text: textOf(one.output), isError: false };
      return [{ role: "user", parts: [result, ...readContent(one.output).filter(({ type }) => type !== "text")] }];
    }
    case "reasoning": {
      const text = one.summary.map((part) => part.text).join("\n\n");
      return [{ role: "assistant", parts: [{ type: "thinking", text, signature: one.encrypted_content ?? "" }] }];
    }
    case "additional_tools":
      return [];
  }
}

function readContent(parts: z.output<typeof content>): Part[] {
  return parts.flatMap((part): Part[] => {
    if (part.type === "input_image") return part.image_url == null ? [] : [imageAt(part.image_url)];
    return [{ type: "text", text: part.type === "refusal" ? part.refusal : part.text }];
  });
}

function textOf(parts: z.output<typeof content>): string {
  return textsOf(readContent(parts)).join("\n");
}

export function writeRequest(request: ModelRequest): Record<string, unknown> {
  const { model, system, tools, toolChoice, maxOutputTokens, temperature, stream, answerSchema } = request;
  const freeText = freeTextTools(tools);
  return {
    model,
    ...(system === "" ? {} : { instructions: system }),
    input: writeInput(request.messages, freeText),
    ...(tools.length === 0 ? {} : { tools: tools.map(writeTool), tool_choice: writeToolChoice(toolChoice, tools) }),
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(answerSchema === undefined ? {} : { text: { format: { type: "json_schema", ...answerSchema } } }),
    store: false,
    stream,
  };
}

/** A result must be of the same kind as its call. */
function writeInput(messages: readonly Message[], freeText: ReadonlySet<string>): object[] {
  const custom = new Set<string>();
  for (const { id, name } of messages.flatMap(({ parts }) => partsOf(parts, "tool_call"))) {
    if (freeText.has(name)) custom.add(id);
  }
  return messages.flatMap(({ role, parts }) =>
    parts.map((part) => writePart(role, part, custom)).filter((one) => one !== undefined),
  );
}

function writePart(role: Message["role"], part: Part, custom: ReadonlySet<string>): object | undefined {
  switch (part.type) {
    case "text":
      return {
        type: "message",
        role,
        content: [{ type: role === "user" ? "input_text" : "output_text", text: part.text }],
      };
    case "image":
    case "image_url":
      return { type: "message", role, content: [{ type: "input_image", image_url: imageAddress(part) }] };
    case "thinking":
      // The endpoint refuses the item without the content it encrypted.
      if (part.signature === "") return undefined;
      return {
        type: "reasoning",
        summary: part.text === "" ? [] : [{ type: "summary_text", text: part.text }],
        encrypted_content: part.signature,
      };
    case "tool_call":
      return custom.has(part.id)
        ? { type: "custom_tool_call", call_id: part.id, name: part.name, input: part.input }
        : { type: "function_call", call_id: part.id, name: part.name, arguments: part.input || "{}" };
    case "tool_result":
      return {
        type: custom.has(part.id) ? "custom_tool_call_output" : "function_call_output",
        call_id: part.id,
        output: part.text,
      };
  }
}
