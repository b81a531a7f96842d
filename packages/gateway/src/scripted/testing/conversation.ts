import type { Message, ModelRequest, Part } from "../../dialects/conversation.ts";
import type { ScriptedRequest } from "../program.ts";
import { scriptedRequest } from "../request.ts";

export function modelRequest(given: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "scripted/demo",
    system: "",
    messages: [user("Build it")],
    tools: [],
    toolChoice: "auto",
    maxOutputTokens: undefined,
    temperature: undefined,
    stopSequences: [],
    stream: true,
    answerSchema: undefined,
    ...given,
  };
}

export function asProgramsSee(given: Partial<ModelRequest> = {}): ScriptedRequest {
  return scriptedRequest(modelRequest(given));
}

export function tools(...names: string[]) {
  return names.map((name) => ({ name, description: "", schema: { type: "object" } }));
}

export function user(...content: (string | Part)[]): Message {
  return {
    role: "user",
    parts: content.map((part) => (typeof part === "string" ? { type: "text", text: part } : part)),
  };
}

export function called(id: string, name: string, input: object = {}): Message {
  return { role: "assistant", parts: [{ type: "tool_call", id, name, input: JSON.stringify(input) }] };
}

export function result(id: string, text: string, isError = false): Part {
  return { type: "tool_result", id, text, isError };
}
