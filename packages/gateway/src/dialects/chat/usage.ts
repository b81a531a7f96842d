import type { Usage } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { openaiErrorStatus } from "../errors.ts";

const count = z.int().min(0);
export const usageSchema = z.object({
  prompt_tokens: count,
  completion_tokens: count.nullish(),
  prompt_tokens_details: z.object({ cached_tokens: count.nullish(), cache_write_tokens: count.nullish() }).nullish(),
});

/** The prompt's tokens include those of the cache. */
export function readUsage(usage: z.output<typeof usageSchema>): Usage {
  const cacheRead = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const cacheWrite = usage.prompt_tokens_details?.cache_write_tokens ?? 0;
  const input = Math.max(0, usage.prompt_tokens - cacheRead - cacheWrite);
  return { input, output: usage.completion_tokens ?? 0, cacheRead, cacheWrite };
}

export function writeUsage({ input, output, cacheRead, cacheWrite }: Usage): object {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
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
