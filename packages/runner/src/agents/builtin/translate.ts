import type { AgentEvent, ClaimedEnd, Usage } from "@slipway/contract";
import type { FinishReason, LanguageModelUsage, TextStreamPart, ToolSet } from "ai";
import { claimEnd } from "../../supervise/end.ts";
import { idText, longText, shortText } from "../../system/text.ts";
import { inputText } from "./toolset.ts";

/** Returns the event for a part of the AI SDK's stream, if any. Executed calls report themselves. */
export function eventOf(part: TextStreamPart<ToolSet>): AgentEvent | undefined {
  switch (part.type) {
    case "start-step":
      return { type: "status", status: "thinking" };
    case "text-delta":
      return { type: "text", channel: "answer", text: longText(part.text) };
    case "reasoning-delta":
      return { type: "text", channel: "thinking", text: longText(part.text) };
    case "tool-call":
      return part.invalid === true ? { ...wrongCall(part), phase: "start", input: inputText(part.input) } : undefined;
    case "tool-error":
      return { ...wrongCall(part), phase: "end", output: longText(String(part.error)), ok: false };
    case "finish-step":
      return { type: "usage", usage: usageOf(part.usage) };
    default:
      return undefined;
  }
}

/** A call of an unknown tool, or with invalid input. */
function wrongCall({ toolCallId, toolName }: { readonly toolCallId: string; readonly toolName: string }) {
  return { type: "tool", id: idText(toolCallId), name: shortText(toolName), kind: "other" } as const;
}

function usageOf({ inputTokenDetails, inputTokens, outputTokens }: LanguageModelUsage): Usage {
  const { noCacheTokens, cacheReadTokens, cacheWriteTokens } = inputTokenDetails;
  return {
    input: noCacheTokens ?? inputTokens ?? 0,
    output: outputTokens ?? 0,
    cacheRead: cacheReadTokens ?? 0,
    cacheWrite: cacheWriteTokens ?? 0,
  };
}

/** The model finished, or wants the results of calls. With any other reason there is no answer. */
export function isWhole(reason: FinishReason | undefined): boolean {
  return reason === "stop" || reason === "tool-calls";
}

export function endAfter(reason: FinishReason | undefined, answer: string): ClaimedEnd {
  switch (reason) {
    case "stop":
      return claimEnd("completed", answer);
    case "tool-calls":
      return claimEnd("max_steps", answer);
    case "content-filter":
      return claimEnd("refused", answer);
    case "length":
      return claimEnd("truncated", "the model's answer is too long");
    default:
      return claimEnd("truncated", "the model's answer broke off");
  }
}
