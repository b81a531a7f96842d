import { noUsage } from "@slipway/contract";
import type { ModelRequest } from "../conversation.ts";
import type { StreamWriter } from "../dialect.ts";
import { openaiErrorOf } from "../errors.ts";
import { writeSse } from "../sse.ts";
import { type ItemEvent, type OpenItem, openCall, openText, openThinking } from "./open-item.ts";
import { itemId } from "./response.ts";
import { responseBase, writeEnd } from "./usage.ts";

export function responsesStreamWriter(request: ModelRequest): StreamWriter {
  let [id, model, usage] = ["", request.model, noUsage];
  let [sequence, items] = [0, 0];
  let open: OpenItem | undefined;
  const output: object[] = [];

  return {
    write(event) {
      switch (event.type) {
        case "start":
          [id, model] = [event.id, event.model];
          return (
            writeState("created", { status: "in_progress" }) + writeState("in_progress", { status: "in_progress" })
          );
        case "usage":
          usage = event.usage;
          return "";
        case "text":
          return event.text === "" ? "" : goOn("text", openText, "msg") + add(event.text);
        case "thinking": {
          const words = goOn("thinking", openThinking, "rs") + add(event.text);
          // The signature ends an item.
          return event.signature ? words + close(event.signature) : words;
        }
        case "tool_start":
          return begin(openCall(request, event.id, event.name));
        case "tool_input":
          return add(event.text);
        case "stop": {
          const closed = close();
          const end = writeEnd(event.reason, usage);
          return closed + writeState(end.status, { output, ...end });
        }
        case "failure":
          return writeState("failed", { status: "failed", error: openaiErrorOf(event.status, event.message) });
      }
    },
  };

  function goOn(kind: OpenItem["kind"], create: (id: string) => OpenItem, prefix: string): string {
    if (open?.kind === kind) return "";
    return begin(create(itemId(prefix, id, items++)));
  }

  function begin(item: OpenItem): string {
    const closed = close();
    open = item;
    return (
      closed +
      emit("response.output_item.added", { output_index: output.length, item: item.begun }) +
      ofItem(item.begin)
    );
  }

  function add(text: string): string {
    return open === undefined || text === "" ? "" : ofItem([open.add(text)]);
  }

  function close(signature = ""): string {
    if (open === undefined) return "";
    const ended = ofItem(open.end());
    const item = open.done(signature);
    const done = emit("response.output_item.done", { output_index: output.length, item });
    output.push(item);
    open = undefined;
    return ended + done;
  }

  function ofItem(events: readonly ItemEvent[]): string {
    const about = { item_id: open?.id, output_index: output.length };
    return events.map(([type, fields]) => emit(type, { ...about, ...fields })).join("");
  }

  function writeState(event: string, fields: object): string {
    return emit(`response.${event}`, { response: { ...responseBase(id, model), ...fields } });
  }

  function emit(type: string, fields: object): string {
    return writeSse({ type, sequence_number: sequence++, ...fields }, type);
  }
}
