import type { ModelRequest } from "../conversation.ts";

/** Items of a response. An item without content has only started. */
export function messageItem(id: string, text: string | undefined): object {
  const content = text === undefined ? [] : [outputText(text)];
  return { type: "message", id, role: "assistant", status: statusOf(text), content };
}

export function outputText(text: string): object {
  return { type: "output_text", text, annotations: [] };
}

export function reasoningItem(id: string, text: string, signature: string): object {
  const summary = text === "" ? [] : [summaryText(text)];
  return { type: "reasoning", id, summary, encrypted_content: signature === "" ? null : signature };
}

export function summaryText(text: string): object {
  return { type: "summary_text", text };
}

/** Calls of free-text tools have a different type from calls of JSON tools. */
export function callItem(
  request: ModelRequest,
  call: { readonly id: string; readonly name: string },
  input: string | undefined,
): { readonly type: string; readonly id: string; readonly [field: string]: unknown } {
  const tool = request.tools.find(({ name }) => name === call.name);
  const named = { call_id: call.id, ...(tool?.grouped ?? { name: call.name }), status: statusOf(input) };
  if (tool?.freeText) return { ...named, type: "custom_tool_call", id: `ctc_${call.id}`, input: input ?? "" };
  const json = input === "" ? "{}" : (input ?? "");
  return { ...named, type: "function_call", id: `fc_${call.id}`, arguments: json };
}

function statusOf(content: string | undefined): string {
  return content === undefined ? "in_progress" : "completed";
}
