import { createHash } from "node:crypto";
import { noUsage, type Usage } from "@slipway/contract";
import type { ModelEvent, StopReason } from "../dialects/conversation.ts";
import { bindAction, type ToolCall } from "./bind.ts";
import type { ScriptedRequest, Turn } from "./program.ts";
import { demandedTool, offeredTools } from "./request.ts";

const bytesPerToken = 4;

/** Streams a turn as a model would. The same request and turn give the same events, ids and counts. */
export function turnEvents(scripted: ScriptedRequest, turn: Turn): ModelEvent[] {
  const { request } = scripted;
  const tool = turn.object === undefined ? undefined : demandedTool(request);
  const calls = (turn.actions ?? []).map((action) => bindAction(action, offeredTools(request), scripted.workdir));
  if (tool) calls.push({ name: tool.name, input: JSON.stringify(turn.object) });
  const text = turn.object === undefined || tool ? turn.text : JSON.stringify(turn.object);
  const id = digest([request.model, request.messages, turn]);
  const content: ModelEvent[] = [
    ...thinkingEvents(turn.thinking ?? ""),
    ...pieces(text ?? "").map((piece) => ({ type: "text" as const, text: piece })),
    ...calls.flatMap((call, index) => callEvents(call, `call_${id}_${index}`)),
  ];
  const usage = usageOf(scripted, turn, [turn.thinking, text, ...calls.map((call) => call.input)]);
  return [
    { type: "start", id: `msg_${id}`, model: request.model },
    // Endpoints report at once what they have read.
    { type: "usage", usage: { ...usage, output: Math.min(usage.output, 1) } },
    ...content,
    { type: "usage", usage },
    { type: "stop", reason: turn.stop ?? stopReason(calls) },
  ];
}

/** Signed, since endpoints accept only signed thinking. */
function thinkingEvents(thinking: string): ModelEvent[] {
  if (thinking === "") return [];
  const said = pieces(thinking).map((piece) => ({ type: "thinking" as const, text: piece }));
  return [...said, { type: "thinking", text: "", signature: "c2NyaXB0ZWQ=" }];
}

function callEvents({ name, input }: ToolCall, id: string): ModelEvent[] {
  return [
    { type: "tool_start", id, name },
    ...pieces(input).map((piece) => ({ type: "tool_input" as const, text: piece })),
  ];
}

function usageOf({ request }: ScriptedRequest, turn: Turn, said: readonly (string | undefined)[]): Usage {
  return {
    ...noUsage,
    input: tokensOf(JSON.stringify([request.system, request.messages, request.tools])),
    output: said.reduce((tokens, text) => tokens + tokensOf(text ?? ""), 0),
    ...turn.usage,
  };
}

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

function stopReason(calls: readonly ToolCall[]): StopReason {
  return calls.length > 0 ? "tool_call" : "end";
}

/** Never splits a character, so that every piece is valid text. */
function pieces(text: string): string[] {
  return text.match(/.{1,24}/gsu) ?? [];
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 24);
}
