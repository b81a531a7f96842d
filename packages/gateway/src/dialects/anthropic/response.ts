import { noUsage } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, ModelRequest, Part } from "../conversation.ts";
import { anthropicErrorStatus } from "../errors.ts";
import { freeTextReader, toolInput } from "../free-text.ts";
import { byType, parseAnswer } from "../parse.ts";
import { contentEvents, gather } from "../whole.ts";
import { answerBlocks, readBlock, toolId } from "./request.ts";
import { readReason, readUsage, usageSchema, writeReason, writeUsage } from "./usage.ts";

const responseSchema = z.object({
  id: z.string(),
  model: z.string(),
  content: z.array(byType(answerBlocks)),
  stop_reason: z.string(),
  usage: usageSchema,
});

export const errorSchema = z.object({
  type: z.literal("error"),
  error: z.object({ type: z.string(), message: z.string() }),
});

export function readResponse(body: unknown, request?: ModelRequest): ModelEvent[] {
  const failure = errorSchema.safeParse(body).data;
  if (failure !== undefined) return [failureEvent(failure)];
  const { id, model, content, stop_reason, usage } = parseAnswer(responseSchema, body);
  return freeTextReader(request)([
    { type: "start", id, model },
    ...contentEvents(content.flatMap((block) => (block === undefined ? [] : readBlock(block)))),
    { type: "usage", usage: readUsage(usage, noUsage) },
    { type: "stop", reason: readReason(stop_reason) },
  ]);
}

export function failureEvent({ error }: z.output<typeof errorSchema>): ModelEvent {
  return { type: "failure", status: anthropicErrorStatus(error.type), message: error.message };
}

export function writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown> {
  const { id, model, parts, usage, reason } = gather(request, events);
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: parts.flatMap(writeBlock),
    stop_reason: writeReason(reason),
    stop_sequence: null,
    usage: writeUsage(usage),
  };
}

function writeBlock(part: Part): object[] {
  if (part.type === "text") return [part];
  if (part.type === "thinking") return [{ type: "thinking", thinking: part.text, signature: part.signature }];
  if (part.type !== "tool_call") return [];
  return [{ type: "tool_use", id: toolId(part.id), name: part.name, input: toolInput(part.input) }];
}
