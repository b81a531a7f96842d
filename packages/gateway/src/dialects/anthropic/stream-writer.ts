import { noUsage } from "@slipway/contract";
import type { ModelEvent, ModelRequest } from "../conversation.ts";
import type { StreamWriter } from "../dialect.ts";
import { anthropicTypeOf } from "../errors.ts";
import { writeSse } from "../sse.ts";
import { toolId } from "./request.ts";
import { writeReason, writeUsage } from "./usage.ts";

export function anthropicStreamWriter(request: ModelRequest): StreamWriter {
  let [id, model, usage] = ["", request.model, noUsage];
  let begun = false;
  let open: "text" | "thinking" | "tool_use" | undefined;
  let index = -1;

  return {
    write(event) {
      switch (event.type) {
        case "start":
          [id, model] = [event.id, event.model];
          return "";
        case "usage":
          usage = event.usage;
          return "";
        case "failure":
          return emit("error", { error: { type: anthropicTypeOf(event.status), message: event.message } });
        default:
          return begin() + writeContent(event);
      }
    },
  };

  /** Delays the first event until the first content, so that it can include the usage that follows the start. */
  function begin(): string {
    if (begun) return "";
    begun = true;
    const message = {
      id,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
    };
    return emit("message_start", { message: { ...message, usage: writeUsage(usage) } });
  }

  function writeContent(event: Exclude<ModelEvent, { type: "start" | "usage" | "failure" }>): string {
    switch (event.type) {
      case "text":
        if (event.text === "") return "";
        return openBlock("text", { text: "" }) + delta({ type: "text_delta", text: event.text });
      case "thinking":
        return writeThinking(event.text, event.signature ?? "");
      case "tool_start":
        return close() + openBlock("tool_use", { id: toolId(event.id), name: event.name, input: {} });
      case "tool_input":
        return event.text === "" ? "" : delta({ type: "input_json_delta", partial_json: event.text });
      case "stop": {
        const stop = { stop_reason: writeReason(event.reason), stop_sequence: null };
        return close() + emit("message_delta", { delta: stop, usage: writeUsage(usage) }) + emit("message_stop", {});
      }
    }
  }

  /** The signature ends a block. */
  function writeThinking(text: string, signature: string): string {
    const opened = openBlock("thinking", { thinking: "", signature: "" });
    const words = text === "" ? "" : delta({ type: "thinking_delta", thinking: text });
    return opened + words + (signature === "" ? "" : delta({ type: "signature_delta", signature }) + close());
  }

  function openBlock(type: NonNullable<typeof open>, fields: object): string {
    if (open === type) return "";
    const closed = close();
    open = type;
    index++;
    return closed + emit("content_block_start", { index, content_block: { type, ...fields } });
  }

  function close(): string {
    if (open === undefined) return "";
    open = undefined;
    return emit("content_block_stop", { index });
  }

  function delta(fields: object): string {
    return emit("content_block_delta", { index, delta: fields });
  }
}

function emit(type: string, fields: object): string {
  return writeSse({ type, ...fields }, type);
}
