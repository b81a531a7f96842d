import type { ModelEvent, ModelRequest } from "../../conversation.ts";
import type { StreamWriter } from "../dialect.ts";
import { openaiErrorOf } from "../errors.ts";
import { writeSse } from "../sse.ts";
import { noUsage } from "../whole.ts";
import { callItem, messageItem, outputText, reasoningItem } from "./items.ts";
import { itemId } from "./response.ts";
import { responseBase, writeEnd } from "./usage.ts";

/** An item while it streams: at its end its whole content is said again. */
type OpenItem =
  | { readonly type: "text"; readonly id: string; text: string }
  | { readonly type: "thinking"; readonly id: string; text: string; signature: string }
  | { readonly type: "tool_call"; readonly id: string; readonly name: string; text: string };

export function responsesStreamWriter(request: ModelRequest): StreamWriter {
  let [id, model, usage] = ["", request.model, noUsage];
  let sequence = 0;
  let open: OpenItem | undefined;
  const output: object[] = [];

  return {
    write(event) {
      switch (event.type) {
        case "start":
          [id, model] = [event.id, event.model];
          return writeState("response.created") + writeState("response.in_progress");
        case "usage":
          usage = event.usage;
          return "";
        case "text":
          return event.text === "" ? "" : writeText(event.text);
        case "thinking":
          return writeThinking(event);
        case "tool_start":
          return close() + openItem({ type: "tool_call", id: event.id, name: event.name, text: "" });
        case "tool_input":
          return writeToolInput(event.text);
        case "stop": {
          const closed = close();
          const end = writeEnd(event.reason, usage);
          return closed + emit(`response.${end.status}`, { response: { ...responseBase(id, model), output, ...end } });
        }
        case "failure": {
          const error = openaiErrorOf(event.status, event.message);
          return emit("response.failed", { response: { ...responseBase(id, model), status: "failed", output, error } });
        }
      }
    },
  };

  function writeText(text: string): string {
    const opened = open?.type === "text" ? "" : close() + openItem({ type: "text", id: newItemId("msg"), text: "" });
    return opened + delta("response.output_text.delta", text, { content_index: 0 });
  }

  /** The seal is the last of an item. */
  function writeThinking({ text, signature = "" }: Extract<ModelEvent, { type: "thinking" }>): string {
    const reusable = open?.type === "thinking";
    const opened = reusable
      ? ""
      : close() + openItem({ type: "thinking", id: newItemId("rs"), text: "", signature: "" });
    const words = text === "" ? "" : delta("response.reasoning_summary_text.delta", text, { summary_index: 0 });
    if (signature === "" || open?.type !== "thinking") return opened + words;
    open.signature = signature;
    return opened + words + close();
  }

  function writeToolInput(text: string): string {
    if (open?.type !== "tool_call" || text === "") return "";
    return delta(`response.${inputEvent(open.name)}.delta`, text, {});
  }

  function openItem(item: OpenItem): string {
    open = item;
    const added = emit("response.output_item.added", { output_index: output.length, item: itemOf(item, false) });
    if (item.type === "text") return added + part("response.content_part.added", outputText(""));
    if (item.type === "thinking") return added + part("response.reasoning_summary_part.added", summaryText(""));
    return added;
  }

  function close(): string {
    if (open === undefined) return "";
    const closing = closeContent(open);
    const item = itemOf(open, true);
    const done = emit("response.output_item.done", { output_index: output.length, item });
    output.push(item);
    open = undefined;
    return closing + done;
  }

  function closeContent(item: OpenItem): string {
    switch (item.type) {
      case "text":
        return (
          emitOfItem("response.output_text.done", { content_index: 0, text: item.text }) +
          part("response.content_part.done", outputText(item.text))
        );
      case "thinking":
        return (
          emitOfItem("response.reasoning_summary_text.done", { summary_index: 0, text: item.text }) +
          part("response.reasoning_summary_part.done", summaryText(item.text))
        );
      case "tool_call": {
        const event = inputEvent(item.name);
        const whole = event === "custom_tool_call_input" ? { input: item.text } : { arguments: item.text || "{}" };
        return emitOfItem(`response.${event}.done`, whole);
      }
    }
  }

  function delta(type: string, text: string, fields: object): string {
    if (open !== undefined) open.text += text;
    return emitOfItem(type, { ...fields, delta: text });
  }

  function part(type: string, content: object): string {
    const index = type.startsWith("response.content_part") ? { content_index: 0 } : { summary_index: 0 };
    return emitOfItem(type, { ...index, part: content });
  }

  function emitOfItem(type: string, fields: object): string {
    const { id: item_id } = open === undefined ? { id: "" } : (itemOf(open, false) as { id: string });
    return emit(type, { item_id, output_index: output.length, ...fields });
  }

  function itemOf(item: OpenItem, done: boolean): object {
    const text = done ? item.text : undefined;
    if (item.type === "text") return messageItem(item.id, text);
    if (item.type === "thinking") return reasoningItem(item.id, text ?? "", item.signature);
    return callItem(request, { type: "tool_call", id: item.id, name: item.name }, text);
  }

  function inputEvent(name: string): "custom_tool_call_input" | "function_call_arguments" {
    const tool = request.tools.find((one) => one.name === name);
    return tool?.freeText ? "custom_tool_call_input" : "function_call_arguments";
  }

  function newItemId(prefix: string): string {
    return itemId(prefix, id, output.length);
  }

  function writeState(type: string): string {
    return emit(type, { response: { ...responseBase(id, model), status: "in_progress" } });
  }

  function emit(type: string, fields: object): string {
    return writeSse({ type, sequence_number: sequence++, ...fields }, type);
  }
}

function summaryText(text: string): object {
  return { type: "summary_text", text };
}
