import { noUsage } from "@slipway/contract";
import type { ModelRequest } from "../conversation.ts";
import type { StreamWriter } from "../dialect.ts";
import { openaiErrorOf } from "../errors.ts";
import { writeSse } from "../sse.ts";
import { writeReason, writeUsage } from "./usage.ts";

export function chatStreamWriter(request: ModelRequest): StreamWriter {
  let [id, model, usage] = ["", request.model, noUsage];
  let call = -1;
  let callIsEmpty = false;

  return {
    write(event) {
      switch (event.type) {
        case "start":
          [id, model] = [event.id, event.model];
          return delta({ role: "assistant", content: "" });
        case "usage":
          usage = event.usage;
          return "";
        case "text":
          return closeCall() + (event.text === "" ? "" : delta({ content: event.text }));
        case "thinking":
          return closeCall() + (event.text === "" ? "" : delta({ reasoning_content: event.text }));
        case "tool_start":
          return closeCall() + startCall(event.id, event.name);
        case "tool_input":
          callIsEmpty = false;
          return delta({ tool_calls: [{ index: call, function: { arguments: event.text } }] });
        case "stop":
          return (
            closeCall() +
            chunk({ choices: [{ index: 0, delta: {}, finish_reason: writeReason(event.reason) }] }) +
            chunk({ choices: [], usage: writeUsage(usage) }) +
            writeSse("[DONE]")
          );
        case "failure":
          return writeSse({ error: openaiErrorOf(event.status, event.message) });
      }
    },
  };

  function startCall(callId: string, name: string): string {
    call++;
    callIsEmpty = true;
    return delta({ tool_calls: [{ index: call, id: callId, type: "function", function: { name, arguments: "" } }] });
  }

  /** Clients parse a call's arguments as JSON, and an empty string is not JSON. */
  function closeCall(): string {
    if (!callIsEmpty) return "";
    callIsEmpty = false;
    return delta({ tool_calls: [{ index: call, function: { arguments: "{}" } }] });
  }

  function delta(fields: object): string {
    return chunk({ choices: [{ index: 0, delta: fields, finish_reason: null }] });
  }

  /** No clock here: clients only display when a chunk was created. */
  function chunk(fields: object): string {
    return writeSse({ id, object: "chat.completion.chunk", created: 0, model, ...fields });
  }
}
