import { z } from "zod";
import type { ModelEvent, ModelRequest, Part } from "../conversation.ts";
import { freeTextReader } from "../free-text.ts";
import { parseAnswer } from "../parse.ts";
import { partsOf, textsOf } from "../turns.ts";
import { contentEvents, gather, reasonWithCalls } from "../whole.ts";
import { errorSchema, failureEvent, readReason, readUsage, usageSchema, writeReason, writeUsage } from "./usage.ts";

const messageSchema = z.object({
  content: z.string().nullish(),
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        id: z.string().nullish(),
        function: z.object({ name: z.string(), arguments: z.string().default("") }),
      }),
    )
    .nullish(),
});

const responseSchema = z.object({
  id: z.string(),
  model: z.string(),
  choices: z.array(z.object({ message: messageSchema, finish_reason: z.string() })).min(1),
  usage: usageSchema.nullish(),
});

export function readResponse(body: unknown, request?: ModelRequest): ModelEvent[] {
  const failure = z.object({ error: errorSchema }).safeParse(body).data;
  if (failure !== undefined) return [failureEvent(failure.error)];
  const { id, model, choices, usage } = parseAnswer(responseSchema, body);
  const [choice] = choices;
  if (choice === undefined) return [];
  const parts = readMessage(choice.message, id);
  const called = partsOf(parts, "tool_call").length > 0;
  const reason = choice.message.refusal ? "refusal" : reasonWithCalls(readReason(choice.finish_reason), called);
  return freeTextReader(request)([
    { type: "start", id, model },
    ...contentEvents(parts),
    ...(usage == null ? [] : [{ type: "usage", usage: readUsage(usage) } as const]),
    { type: "stop", reason },
  ]);
}

function readMessage(message: z.output<typeof messageSchema>, responseId: string): Part[] {
  const thinking = message.reasoning_content ?? message.reasoning ?? "";
  const text = message.content || message.refusal || "";
  return [
    ...(thinking === "" ? [] : [{ type: "thinking", text: thinking, signature: "" } as const]),
    ...(text === "" ? [] : [{ type: "text", text } as const]),
    ...(message.tool_calls ?? []).map(
      ({ id, function: called }, index): Part => ({
        type: "tool_call",
        id: id || callId(responseId, index),
        name: called.name,
        input: called.arguments,
      }),
    ),
  ];
}

/** For endpoints that send calls without ids. */
export function callId(responseId: string, index: number): string {
  return `call_${responseId}_${index}`;
}

export function writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown> {
  const { id, model, parts, usage, reason } = gather(request, events);
  const text = textsOf(parts);
  const thinking = textsOf(parts, "thinking");
  const calls = partsOf(parts, "tool_call").map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.input || "{}" },
  }));
  const message = {
    role: "assistant",
    content: text.length === 0 ? null : text.join(""),
    ...(thinking.length === 0 ? {} : { reasoning_content: thinking.join("") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    id,
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: writeReason(reason) }],
    usage: writeUsage(usage),
  };
}
