import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent } from "../conversation.ts";
import { byType, parseAnswer, parseJson } from "../parse.ts";
import type { Interpreter } from "../stream-reader.ts";
import { contentEvents } from "../whole.ts";
import { type Item, isRefusal, itemSchema, readItem } from "./response.ts";
import { endSchema, failureEvent, readEnd } from "./usage.ts";

const output_index = z.int().min(0).nullish();
const delta = { output_index, delta: z.string() };
const item = { output_index, item: itemSchema };
const end = { response: endSchema };

const eventSchema = byType({
  "response.created": { response: z.object({ id: z.string(), model: z.string().default("") }) },
  "response.output_item.added": item,
  "response.output_item.done": item,
  "response.output_text.delta": delta,
  "response.refusal.delta": delta,
  "response.reasoning_summary_text.delta": delta,
  "response.reasoning_text.delta": delta,
  "response.function_call_arguments.delta": delta,
  "response.custom_tool_call_input.delta": delta,
  "response.completed": end,
  "response.incomplete": end,
  "response.failed": end,
  error: { code: z.string().nullish(), message: z.string().nullish(), error: endSchema.shape.error },
});

type StreamEvent = NonNullable<z.output<typeof eventSchema>>;
type DeltaEvent = Extract<StreamEvent, { delta: string }>;

export function responsesInterpreter(): Interpreter {
  const seen = { called: false, refused: false };
  /** The streaming item. `told` is whether any of its content has arrived. */
  let open: { readonly index: number | null | undefined; told: boolean } | undefined;

  return {
    read(data) {
      const event = parseAnswer(eventSchema, parseJson(data));
      return event === undefined ? [] : interpret(event);
    },
  };

  function interpret(event: StreamEvent): ModelEvent[] {
    switch (event.type) {
      case "response.created":
        return [{ type: "start", id: event.response.id, model: event.response.model }];
      case "response.output_item.added":
        open = { index: event.output_index, told: false };
        return event.item === undefined ? [] : startItem(event.item);
      case "response.output_item.done":
        return event.item === undefined ? [] : endItem(event.item);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return readEnd(event.response, event.type.slice("response.".length), seen);
      case "error":
        return [failureEvent(event.code ?? event.error?.code, event.message ?? event.error?.message)];
      default:
        return readDelta(event);
    }
  }

  function startItem(started: Item): ModelEvent[] {
    if (started.type === "message" || started.type === "reasoning") return [];
    seen.called = true;
    return contentEvents(readItem(started)).slice(0, 1);
  }

  /** Some endpoints send an item only when it is done. From others, only the encrypted content is still missing. */
  function endItem(done: Item): ModelEvent[] {
    const [begun, told] = [open !== undefined, open?.told ?? false];
    open = undefined;
    if (isRefusal(done)) seen.refused = true;
    const isCall = done.type === "function_call" || done.type === "custom_tool_call";
    if (isCall) seen.called = true;
    const events = contentEvents(readItem(done));
    if (!told) return isCall && begun ? events.slice(1) : events;
    const seal = done.type === "reasoning" ? done.encrypted_content : undefined;
    return seal ? [{ type: "thinking", text: "", signature: seal }] : [];
  }

  function readDelta(event: DeltaEvent): ModelEvent[] {
    if (event.output_index != null && open?.index != null && event.output_index !== open.index) {
      throw new SlipwayError("invalid_answer", `The answer continues item ${event.output_index}, which is not open.`);
    }
    if (open === undefined) open = { index: event.output_index, told: false };
    if (event.delta === "") return [];
    open.told = true;
    switch (event.type) {
      case "response.refusal.delta":
        seen.refused = true;
        return [{ type: "text", text: event.delta }];
      case "response.output_text.delta":
        return [{ type: "text", text: event.delta }];
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return [{ type: "thinking", text: event.delta }];
      default:
        return [{ type: "tool_input", text: event.delta }];
    }
  }
}
