import type { ModelRequest } from "../conversation.ts";
import { callItem, messageItem, outputText, reasoningItem, summaryText } from "./items.ts";

/** A type, and the fields besides those that identify the item. */
export type ItemEvent = readonly [type: string, fields: object];

/** An output item while it streams. Its end repeats all of its content. */
export interface OpenItem {
  readonly kind: "text" | "thinking" | "call";
  readonly id: string;
  /** The item at its start. */
  readonly begun: object;
  readonly begin: readonly ItemEvent[];
  add(text: string): ItemEvent;
  end(): readonly ItemEvent[];
  /** The item at its end. Only a thought has a signature. */
  done(signature: string): object;
}

export function openText(id: string): OpenItem {
  let text = "";
  const at = { content_index: 0 };
  return {
    kind: "text",
    id,
    begun: messageItem(id, undefined),
    begin: [["response.content_part.added", { ...at, part: outputText("") }]],
    add(more) {
      text += more;
      return ["response.output_text.delta", { ...at, delta: more }];
    },
    end: () => [
      ["response.output_text.done", { ...at, text }],
      ["response.content_part.done", { ...at, part: outputText(text) }],
    ],
    done: () => messageItem(id, text),
  };
}

export function openThinking(id: string): OpenItem {
  let text = "";
  const at = { summary_index: 0 };
  return {
    kind: "thinking",
    id,
    begun: reasoningItem(id, "", ""),
    begin: [["response.reasoning_summary_part.added", { ...at, part: summaryText("") }]],
    add(more) {
      text += more;
      return ["response.reasoning_summary_text.delta", { ...at, delta: more }];
    },
    end: () => [
      ["response.reasoning_summary_text.done", { ...at, text }],
      ["response.reasoning_summary_part.done", { ...at, part: summaryText(text) }],
    ],
    done: (signature) => reasoningItem(id, text, signature),
  };
}

export function openCall(request: ModelRequest, callId: string, name: string): OpenItem {
  let input = "";
  const call = { id: callId, name };
  const begun = callItem(request, call, undefined);
  const isCustom = begun.type === "custom_tool_call";
  const events = isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  return {
    kind: "call",
    id: begun.id,
    begun,
    begin: [],
    add(more) {
      input += more;
      return [`${events}.delta`, { delta: more }];
    },
    end: () => [[`${events}.done`, isCustom ? { input } : { arguments: input || "{}" }]],
    done: () => callItem(request, call, input),
  };
}
