import type { Usage } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { openaiErrorStatus } from "../errors.ts";
import { count, promptDetails, promptTokens, usageOf, writeDetails } from "../prompt-usage.ts";

const usageSchema = z.object({ input_tokens: count, output_tokens: count, input_tokens_details: promptDetails });

function writeUsage(usage: Usage): object {
  const prompt = promptTokens(usage);
  return {
    input_tokens: prompt,
    input_tokens_details: writeDetails(usage),
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: prompt + usage.output,
  };
}

/** The end of a response. */
export const endSchema = z.object({
  status: z.string().nullish(),
  incomplete_details: z.object({ reason: z.string().nullish() }).nullish(),
  usage: usageSchema.nullish(),
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
});
export type End = z.output<typeof endSchema>;

/** `status` is the event's when streaming. Only completed and incomplete responses have a stop. */
export function readEnd(end: End, status: string, seen: { readonly called: boolean; readonly refused: boolean }) {
  const events: ModelEvent[] = [];
  if (end.usage != null) {
    const { input_tokens, output_tokens, input_tokens_details } = end.usage;
    events.push({ type: "usage", usage: usageOf(input_tokens, output_tokens, input_tokens_details) });
  }
  if (status === "completed") events.push({ type: "stop", reason: completedReason(seen) });
  else if (status === "incomplete") events.push({ type: "stop", reason: incompleteReason(end) });
  else events.push(failureEvent(end.error?.code, end.error?.message));
  return events;
}

export function failureEvent(code: unknown, message: string | null | undefined): ModelEvent {
  return { type: "failure", status: openaiErrorStatus(code), message: message ?? "The endpoint failed." };
}

function completedReason({ called, refused }: { readonly called: boolean; readonly refused: boolean }): StopReason {
  if (refused) return "refusal";
  return called ? "tool_call" : "end";
}

function incompleteReason(end: End): StopReason {
  return end.incomplete_details?.reason === "content_filter" ? "refusal" : "max_tokens";
}

/** Reports a refusal as a filtered answer: agents treat that as a failure, but an empty answer as success. */
export function writeEnd(
  reason: StopReason,
  usage: Usage,
): { readonly status: string; readonly [field: string]: unknown } {
  const incomplete =
    reason === "max_tokens" ? "max_output_tokens" : reason === "refusal" ? "content_filter" : undefined;
  return {
    status: incomplete === undefined ? "completed" : "incomplete",
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    usage: writeUsage(usage),
  };
}

export function responseBase(id: string, model: string): object {
  return {
    id,
    object: "response",
    created_at: 0,
    model,
    error: null,
    incomplete_details: null,
    output: [],
    usage: null,
  };
}
