import { z } from "zod";
import type { ModelEvent, ModelRequest, Part } from "../conversation.ts";
import { byType, parseAnswer } from "../parse.ts";
import { partsOf } from "../turns.ts";
import { contentEvents, gather, type WholeResponse } from "../whole.ts";
import { callItem, messageItem, reasoningItem } from "./items.ts";
import { readCall } from "./tools.ts";
import { endSchema, readEnd, responseBase, writeEnd } from "./usage.ts";

const call = { call_id: z.string(), name: z.string(), namespace: z.string().nullish() };
const texts = z.array(z.object({ text: z.string() }));

export const itemSchema = byType({
  message: {
    content: z.array(byType({ output_text: { text: z.string() }, refusal: { refusal: z.string() } })),
  },
  reasoning: { summary: texts.default([]), content: texts.nullish(), encrypted_content: z.string().nullish() },
  function_call: { ...call, arguments: z.string().default("") },
  custom_tool_call: { ...call, input: z.string().default("") },
});
export type Item = NonNullable<z.output<typeof itemSchema>>;

const responseSchema = endSchema.extend({
  id: z.string(),
  model: z.string(),
  output: z.array(itemSchema),
  status: z.string(),
});

export function readResponse(body: unknown): ModelEvent[] {
  const { id, model, output, ...end } = parseAnswer(responseSchema, body);
  const items = output.filter((one) => one !== undefined);
  const parts = items.flatMap(readItem);
  const seen = { called: partsOf(parts, "tool_call").length > 0, refused: items.some(isRefusal) };
  return [{ type: "start", id, model }, ...contentEvents(parts), ...readEnd(end, end.status, seen)];
}

export function isRefusal(item: Item): boolean {
  return item.type === "message" && item.content.some((part) => part?.type === "refusal");
}

export function readItem(item: Item): Part[] {
  switch (item.type) {
    case "message":
      return item.content.flatMap((part): Part[] => {
        if (part === undefined) return [];
        return [{ type: "text", text: part.type === "refusal" ? part.refusal : part.text }];
      });
    case "reasoning": {
      const text = [...item.summary, ...(item.content ?? [])].map((part) => part.text).join("\n\n");
      return [{ type: "thinking", text, signature: item.encrypted_content ?? "" }];
    }
    case "function_call":
    case "custom_tool_call":
      return [readCall(item)];
  }
}

export function writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown> {
  const whole = gather(request, events);
  return {
    ...responseBase(whole.id, whole.model),
    output: writeOutput(request, whole),
    ...writeEnd(whole.reason, whole.usage),
  };
}

function writeOutput(request: ModelRequest, { id, parts }: WholeResponse): object[] {
  return parts.flatMap((part, index): object[] => {
    if (part.type === "text") return [messageItem(itemId("msg", id, index), part.text)];
    if (part.type === "thinking") return [reasoningItem(itemId("rs", id, index), part.text, part.signature)];
    return part.type === "tool_call" ? [callItem(request, part, part.input)] : [];
  });
}

export function itemId(prefix: string, responseId: string, index: number): string {
  return `${prefix}_${responseId}_${index}`;
}
