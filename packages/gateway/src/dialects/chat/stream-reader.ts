import { SlipwayError } from "@slipway/contract";
import { z } from "zod";
import type { ModelEvent, StopReason } from "../conversation.ts";
import { parseAnswer, parseJson } from "../parse.ts";
import type { Interpreter } from "../stream-reader.ts";
import { reasonWithCalls } from "../whole.ts";
import { callId } from "./response.ts";
import { errorSchema, failureEvent, readReason, readUsage, usageSchema } from "./usage.ts";

const callDelta = z.object({
  index: z.int().min(0).default(0),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

const delta = z.object({
  content: z.string().nullish(),
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(callDelta).nullish(),
});

const chunkSchema = z.object({
  id: z.string().default(""),
  model: z.string().default(""),
  choices: z.array(z.object({ delta: delta.nullish(), finish_reason: z.string().nullish() })).default([]),
  usage: usageSchema.nullish(),
  error: errorSchema.nullish(),
});

/** Usage comes after the finish reason, so the stop waits for the end mark. */
export function chatInterpreter(): Interpreter {
  let started: string | undefined;
  let reason: StopReason | undefined;
  let refused = false;
  let calls = 0;
  let openCall: { readonly index: number; readonly id: string } | undefined;

  return {
    read(data) {
      if (data === "[DONE]") return stop();
      const chunk = parseAnswer(chunkSchema, parseJson(data));
      return chunk.error == null ? interpret(chunk) : [failureEvent(chunk.error)];
    },
  };

  function interpret({ id, model, choices, usage }: z.output<typeof chunkSchema>): ModelEvent[] {
    const events: ModelEvent[] = [];
    if (started === undefined) events.push({ type: "start", id, model });
    started ??= id;
    const [choice] = choices;
    if (choice?.delta != null) events.push(...readDelta(choice.delta));
    if (choice?.finish_reason != null) reason = readReason(choice.finish_reason);
    if (usage != null) events.push({ type: "usage", usage: readUsage(usage) });
    return events;
  }

  function readDelta({ content, refusal, reasoning_content, reasoning, tool_calls }: z.output<typeof delta>) {
    const events: ModelEvent[] = [];
    const thinking = reasoning_content ?? reasoning;
    if (thinking) events.push({ type: "thinking", text: thinking });
    if (content) events.push({ type: "text", text: content });
    if (refusal) {
      refused = true;
      events.push({ type: "text", text: refusal });
    }
    for (const call of tool_calls ?? []) events.push(...readCall(call));
    return events;
  }

  /** A call starts with its name. Later pieces carry only its index, though some endpoints repeat the id. */
  function readCall({ index, id, function: called }: z.output<typeof callDelta>): ModelEvent[] {
    const events: ModelEvent[] = [];
    const sameCall = openCall?.index === index && (!id || id === openCall.id);
    if (!sameCall) {
      if (!called?.name) throw outOfOrder(index);
      openCall = { index, id: id || callId(started ?? "", calls) };
      calls++;
      events.push({ type: "tool_start", id: openCall.id, name: called.name });
    }
    if (called?.arguments) events.push({ type: "tool_input", text: called.arguments });
    return events;
  }

  function stop(): ModelEvent[] {
    if (reason === undefined) return [];
    return [{ type: "stop", reason: refused ? "refusal" : reasonWithCalls(reason, calls > 0) }];
  }
}

function outOfOrder(index: number): SlipwayError {
  return new SlipwayError("invalid_answer", `The model's answer continues tool call ${index}, which is not open.`);
}
