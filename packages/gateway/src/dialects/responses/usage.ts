import type { Usage } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { openaiErrorStatus } from "../errors.ts";

const count = z.int().min(0);
const usageSchema = z.object({
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count.nullish(), cache_write_tokens: count.nullish() }).nullish(),
});

/** The input's tokens include those of the cache. */
function readUsage(usage: z.output<typeof usageSchema>): Usage {
  const cacheRead = usage.input_tokens_details?.cached_tokens ?? 0;
  const cacheWrite = usage.input_tokens_details?.cache_write_tokens ?? 0;
  const input = Math.max(0, usage.input_tokens - cacheRead - cacheWrite);
  return { input, output: usage.output_tokens, cacheRead, cacheWrite };
}

function writeUsage({ input, output, cacheRead, cacheWrite }: Usage): object {
  const all = input + cacheRead + cacheWrite;
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: all + output,
  };
}

/** What a response says at its end. */
export const endSchema = z.object({
  status: z.string().nullish(),
  incomplete_details: z.object({ reason: z.string().nullish() }).nullish(),
  usage: usageSchema.nullish(),
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
});
export type End = z.output<typeof endSchema>;

/** `status` is the event's when it streams. Nothing but a completed and an incomplete response has a stop. */
export function readEnd(end: End, status: string, seen: { readonly called: boolean; readonly refused: boolean }) {
  const events: ModelEvent[] = end.usage == null ? [] : [{ type: "usage", usage: readUsage(end.usage) }];
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

/** A refusal is told as a filtered answer: agents take that for a failure, and an answer with nothing in it for success. */
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
