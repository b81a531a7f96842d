import type { Usage } from "@slipway/contract";
import { z } from "zod";
import type { StopReason } from "../conversation.ts";

const count = z.int().min(0).nullish();
export const usageSchema = z.object({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
});

/** Keeps counts that a later report does not name. */
export function readUsage(usage: z.output<typeof usageSchema>, before: Usage): Usage {
  return {
    input: usage.input_tokens ?? before.input,
    output: usage.output_tokens ?? before.output,
    cacheRead: usage.cache_read_input_tokens ?? before.cacheRead,
    cacheWrite: usage.cache_creation_input_tokens ?? before.cacheWrite,
  };
}

export function writeUsage(usage: Usage): object {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    output_tokens: usage.output,
  };
}

const reasons: Readonly<Record<string, StopReason>> = {
  tool_use: "tool_call",
  max_tokens: "max_tokens",
  model_context_window_exceeded: "max_tokens",
  stop_sequence: "stop_sequence",
  refusal: "refusal",
};

export function readReason(reason: string): StopReason {
  return reasons[reason] ?? "end";
}

export function writeReason(reason: StopReason): string {
  if (reason === "end") return "end_turn";
  return reason === "tool_call" ? "tool_use" : reason;
}
