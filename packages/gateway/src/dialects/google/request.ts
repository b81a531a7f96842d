import { z } from "zod";
import type { Message, ModelRequest, Part, ToolDefinition } from "../conversation.ts";
import { jsonObject, parseRequest } from "../parse.ts";
import { joinTexts, mergeTurns } from "../turns.ts";
import { createPairs, type Pairs } from "./pairs.ts";
import { readSchema } from "./schema.ts";

const inlineData = z.object({ mimeType: z.string(), data: z.string() }).nullish();
const functionCall = z.object({ id: z.string().nullish(), name: z.string(), args: jsonObject.nullish() });
const functionResponse = z.object({
  id: z.string().nullish(),
  name: z.string(),
  response: jsonObject.nullish(),
  parts: z.array(z.object({ inlineData })).nullish(),
});
const part = z.object({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  inlineData,
  functionCall: functionCall.nullish(),
  functionResponse: functionResponse.nullish(),
});
const content = z.object({ role: z.string().nullish(), parts: z.array(part).nullish() });

const declaration = z.object({
  name: z.string(),
  description: z.string().nullish(),
  parameters: jsonObject.nullish(),
  parametersJsonSchema: jsonObject.nullish(),
});

const requestSchema = z.object({
  model: z.string().min(1),
  stream: z.boolean().default(false),
  contents: z.array(content),
  systemInstruction: content.nullish(),
  tools: z.array(z.object({ functionDeclarations: z.array(declaration).nullish() })).nullish(),
  toolConfig: z
    .object({
      functionCallingConfig: z
        .object({ mode: z.string().nullish(), allowedFunctionNames: z.array(z.string()).nullish() })
        .nullish(),
    })
    .nullish(),
  generationConfig: z
    .object({
      maxOutputTokens: z.int().min(1).max(10_000_000).nullish(),
      temperature: z.number().nullish(),
      stopSequences: z.array(z.string()).nullish(),
      responseSchema: jsonObject.nullish(),
      responseJsonSchema: jsonObject.nullish(),
    })
    .nullish(),
});

/** `model` and `stream` come from the path. */
export function readRequest(body: unknown): ModelRequest {
  const request = parseRequest(requestSchema, body);
  const { maxOutputTokens, temperature, stopSequences, responseSchema, responseJsonSchema } =
    request.generationConfig ?? {};
  const answerSchema = responseJsonSchema ?? (responseSchema && readSchema(responseSchema));
  const pairs = createPairs();
  return {
    model: request.model,
    system: joinTexts((request.systemInstruction?.parts ?? []).map(({ text }) => text ?? "")),
    messages: mergeTurns(request.contents.map((one) => readContent(one, pairs))),
    tools: (request.tools ?? []).flatMap(({ functionDeclarations }) => (functionDeclarations ?? []).map(readTool)),
    toolChoice: readToolChoice(request.toolConfig),
    maxOutputTokens: maxOutputTokens ?? undefined,
    temperature: temperature ?? undefined,
    stopSequences: stopSequences ?? [],
    stream: request.stream,
    answerSchema: answerSchema == null ? undefined : { name: "answer", schema: answerSchema },
  };
}

function readContent({ role, parts }: z.output<typeof content>, pairs: Pairs): Message {
  return {
    role: role === "model" ? "assistant" : "user",
    parts: (parts ?? []).flatMap((one) => readPart(one, pairs)),
  };
}

function readPart({ text, thought, inlineData, functionCall, functionResponse }: z.output<typeof part>, pairs: Pairs) {
  const parts: Part[] = [];
  if (text && thought) parts.push({ type: "thinking", text, signature: "" });
  else if (text) parts.push({ type: "text", text });
  parts.push(...readImage(inlineData));
  if (functionCall != null) {
    const { id, name, args } = functionCall;
    parts.push({ type: "tool_call", id: pairs.call(name, id), name, input: JSON.stringify(args ?? {}) });
  }
  if (functionResponse != null) {
    const { id, name, response, parts: images } = functionResponse;
    parts.push({ type: "tool_result", id: pairs.result(name, id), ...readResult(response ?? {}) });
    // Images follow the result: a neutral result is text.
    parts.push(...(images ?? []).flatMap((image) => readImage(image.inlineData)));
  }
  return parts;
}

function readImage(data: z.output<typeof inlineData>): Part[] {
  if (!data?.mimeType.startsWith("image/")) return [];
  return [{ type: "image", mediaType: data.mimeType, base64: data.data }];
}

/** By convention, `output` holds a result and `error` a failure. Anything else is the result itself. */
function readResult(response: Record<string, unknown>): { readonly text: string; readonly isError: boolean } {
  const { output, error } = response;
  if (typeof error === "string") return { text: error, isError: true };
  const isPlain = typeof output === "string" && Object.keys(response).length === 1;
  return { text: isPlain ? output : JSON.stringify(response), isError: false };
}

function readTool({ name, description, parameters, parametersJsonSchema }: z.output<typeof declaration>) {
  const schema = parametersJsonSchema ?? readSchema(parameters ?? { type: "object", properties: {} });
  return { name, description: description ?? "", schema } satisfies ToolDefinition;
}

function readToolChoice(config: z.output<typeof requestSchema>["toolConfig"]): ModelRequest["toolChoice"] {
  const { mode, allowedFunctionNames } = config?.functionCallingConfig ?? {};
  if (mode === "NONE") return "none";
  if (mode !== "ANY") return "auto";
  const [only, ...others] = allowedFunctionNames ?? [];
  return only !== undefined && others.length === 0 ? { name: only } : "required";
}
