import type { Usage } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { openaiErrorStatus } from "../errors.ts";
import { count, promptDetails, promptTokens, usageOf, writeDetails } from "../prompt-usage.ts";

export const usageSchema = z.object({
  prompt_tokens: count,
  completion_tokens: count.nullish(),
  prompt_tokens_details: promptDetails,
});

export function readUsage(usage: z.output<typeof usageSchema>): Usage {
  return usageOf(usage.prompt_tokens, usage.completion_tokens ?? 0, usage.prompt_tokens_details);
}

export function writeUsage(usage: Usage): object {
  const prompt = promptTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: writeDetails(usage),
  };
}

export function readReason(reason: string): StopReason {
  if (reason === "tool_calls" || reason === "function_call") return "tool_call";
  if (reason === "length") return "max_tokens";
  return reason === "content_filter" ? "refusal" : "end";
}

export function writeReason(reason: StopReason): string {
  if (reason === "tool_call") return "tool_calls";
  if (reason === "max_tokens") return "length";
  return reason === "refusal" ? "content_filter" : "stop";
}

export const errorSchema = z.object({
  message: z.string().default("The endpoint failed."),
  type: z.unknown(),
  code: z.unknown(),
});

export function failureEvent(error: z.output<typeof errorSchema>): ModelEvent {
  return { type: "failure", status: openaiErrorStatus(error.code, error.type), message: error.message };
}
