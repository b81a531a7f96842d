import type { ModelRequest, Part } from "../../conversation.ts";

type ToolCall = Extract<Part, { type: "tool_call" }>;

/** Of a whole response's items or, without their content, of items that begin to stream. */
export function messageItem(id: string, text: string | undefined): object {
  const content = text === undefined ? [] : [outputText(text)];
  return { type: "message", id, role: "assistant", status: statusOf(text), content };
}

export function outputText(text: string): object {
  return { type: "output_text", text, annotations: [] };
}

export function reasoningItem(id: string, text: string, signature: string): object {
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  return { type: "reasoning", id, summary, encrypted_content: signature === "" ? null : signature };
}

export function callItem(request: ModelRequest, call: Omit<ToolCall, "input">, input: string | undefined): object {
  const tool = request.tools.find(({ name }) => name === call.name);
  const named = { call_id: call.id, ...(tool?.grouped ?? { name: call.name }), status: statusOf(input) };
  return tool?.freeText
    ? { type: "custom_tool_call", id: `ctc_${call.id}`, ...named, input: input ?? "" }
    : { type: "function_call", id: `fc_${call.id}`, ...named, arguments: input === "" ? "{}" : (input ?? "") };
}

function statusOf(content: string | undefined): string {
  return content === undefined ? "in_progress" : "completed";
}
