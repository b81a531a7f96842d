import type { Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, Part, StopReason } from "../conversation.ts";
import { toolInput } from "../free-text.ts";
import { promptTokens } from "../prompt-usage.ts";
import { gather } from "../whole.ts";

export function writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown> {
  const { id, model, parts, usage, reason } = gather(request, events);
  return {
    ...writeCandidate(parts.flatMap(writePart), reason),
    usageMetadata: writeUsage(usage),
    modelVersion: model,
    responseId: id,
  };
}

/** `reason` is set on the last piece of an answer. */
export function writeCandidate(parts: readonly object[], reason?: StopReason): object {
  const finish = reason === undefined ? {} : { finishReason: writeReason(reason) };
  return { candidates: [{ content: { role: "model", parts }, ...finish, index: 0 }] };
}

export function writePart(part: Part): object[] {
  if (part.type === "text") return [{ text: part.text }];
  if (part.type === "thinking") return part.text === "" ? [] : [{ text: part.text, thought: true }];
  if (part.type !== "tool_call") return [];
  const { id, name, input } = part;
  return [{ functionCall: { id, name, args: toolInput(input) } }];
}

export function writeUsage(usage: Usage): object {
  const prompt = promptTokens(usage);
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: usage.output,
    cachedContentTokenCount: usage.cacheRead,
    totalTokenCount: prompt + usage.output,
  };
}

function writeReason(reason: StopReason): string {
  if (reason === "max_tokens") return "MAX_TOKENS";
  return reason === "refusal" ? "SAFETY" : "STOP";
}
