import { noUsage, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { byType, jsonObject, parseAnswer, parseJson } from "../parse.ts";
import type { Interpreter } from "../stream-reader.ts";
import { errorSchema, failureEvent } from "./response.ts";
import { readReason, readUsage, usageSchema } from "./usage.ts";

const index = z.int().min(0);
const eventSchema = byType({
  message_start: { message: z.object({ id: z.string(), model: z.string(), usage: usageSchema.nullish() }) },
  content_block_start: {
    index,
    content_block: byType({
      text: { text: z.string().default("") },
      thinking: { thinking: z.string().default(""), signature: z.string().default("") },
      tool_use: { id: z.string(), name: z.string(), input: jsonObject.default({}) },
    }),
  },
  content_block_delta: {
    index,
    delta: byType({
      text_delta: { text: z.string() },
      thinking_delta: { thinking: z.string() },
      signature_delta: { signature: z.string() },
      input_json_delta: { partial_json: z.string() },
    }),
  },
  message_delta: { delta: z.object({ stop_reason: z.string().nullish() }), usage: usageSchema.nullish() },
  message_stop: {},
  error: errorSchema.shape,
});

type StreamEvent = NonNullable<z.output<typeof eventSchema>>;
type StartedBlock = Extract<StreamEvent, { type: "content_block_start" }>["content_block"];
type Delta = Extract<StreamEvent, { type: "content_block_delta" }>["delta"];

export function anthropicInterpreter(): Interpreter {
  let usage = noUsage;
  let reason: StopReason | undefined;
  let open: { readonly index: number; readonly block: StartedBlock } | undefined;

  return {
    read(data) {
      const event = parseAnswer(eventSchema, parseJson(data));
      return event === undefined ? [] : interpret(event);
    },
  };

  function interpret(event: StreamEvent): ModelEvent[] {
    switch (event.type) {
      case "message_start": {
        const { id, model } = event.message;
        return [{ type: "start", id, model }, ...report(event.message.usage)];
      }
      case "content_block_start":
        open = { index: event.index, block: event.content_block };
        return startBlock(event.content_block);
      case "content_block_delta":
        if (event.index !== open?.index) throw outOfOrder(event.index);
        return open.block === undefined ? [] : readDelta(event.delta);
      case "message_delta":
        if (event.delta.stop_reason != null) reason = readReason(event.delta.stop_reason);
        return report(event.usage);
      case "message_stop":
        // Behind some proxies, a cut stream ends without a reason.
        return reason === undefined ? [] : [{ type: "stop", reason }];
      case "error":
        return [failureEvent(event)];
    }
  }

  function report(reported: z.output<typeof usageSchema> | null | undefined): ModelEvent[] {
    if (reported == null) return [];
    usage = readUsage(reported, usage);
    return [{ type: "usage", usage }];
  }
}

function startBlock(block: StartedBlock): ModelEvent[] {
  if (block?.type === "text") return block.text === "" ? [] : [block];
  if (block?.type === "thinking") return thinking(block.thinking, block.signature);
  if (block?.type !== "tool_use") return [];
  const input = Object.keys(block.input).length === 0 ? "" : JSON.stringify(block.input);
  return [{ type: "tool_start", id: block.id, name: block.name }, ...toolInput(input)];
}

function readDelta(delta: Delta): ModelEvent[] {
  switch (delta?.type) {
    case "text_delta":
      return delta.text === "" ? [] : [{ type: "text", text: delta.text }];
    case "thinking_delta":
      return thinking(delta.thinking, "");
    case "signature_delta":
      return thinking("", delta.signature);
    case "input_json_delta":
      return toolInput(delta.partial_json);
    default:
      return [];
  }
}

function thinking(text: string, signature: string): ModelEvent[] {
  if (text === "" && signature === "") return [];
  return [{ type: "thinking", text, ...(signature === "" ? {} : { signature }) }];
}

function toolInput(text: string): ModelEvent[] {
  return text === "" ? [] : [{ type: "tool_input", text }];
}

function outOfOrder(index: number): SlipwayError {
  return new SlipwayError("invalid_answer", `The model's answer continues block ${index}, which is not open.`);
}
