import type { Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, Part, StopReason } from "../conversation.ts";
import { parseObject } from "../parse.ts";
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

/** `reason`: of the last piece of an answer. */
export function writeCandidate(parts: readonly object[], reason?: StopReason): object {
  const finish = reason === undefined ? {} : { finishReason: writeReason(reason) };
  return { candidates: [{ content: { role: "model", parts }, ...finish, index: 0 }] };
}

export function writePart(part: Part): object[] {
  if (part.type === "text") return [{ text: part.text }];
  if (part.type === "thinking") return part.text === "" ? [] : [{ text: part.text, thought: true }];
  if (part.type !== "tool_call") return [];
  const { id, name, input } = part;
  // A model may have called a tool with what is no JSON object; the dialect has only objects.
  return [{ functionCall: { id, name, args: parseObject(input === "" ? "{}" : input) ?? { input } } }];
}

/** The prompt's tokens include those of the cache. */
export function writeUsage({ input, output, cacheRead, cacheWrite }: Usage): object {
  const prompt = input + cacheRead + cacheWrite;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: prompt + output,
  };
}

function writeReason(reason: StopReason): string {
  if (reason === "max_tokens") return "MAX_TOKENS";
  return reason === "refusal" ? "SAFETY" : "STOP";
}
