import { noUsage, SlipwayError, type Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, Part, StopReason } from "./conversation.ts";

/** A response with all its parts. */
export interface WholeResponse {
  readonly id: string;
  readonly model: string;
  readonly parts: readonly Part[];
  readonly usage: Usage;
  readonly reason: StopReason;
}

/** Fails with `stream_truncated` if the events do not reach a stop. */
export function gather(request: ModelRequest, events: readonly ModelEvent[]): WholeResponse {
  const parts: Part[] = [];
  let [id, model, usage] = ["", request.model, noUsage];
  let reason: StopReason | undefined;
  for (const event of events) {
    if (event.type === "start") [id, model] = [event.id, event.model];
    else if (event.type === "usage") usage = event.usage;
    else if (event.type === "stop") reason = event.reason;
    else if (event.type === "failure") throw new SlipwayError("stream_truncated", event.message);
    else addTo(parts, event);
  }
  if (reason === undefined) throw new SlipwayError("stream_truncated", "The model's answer ended before its end.");
  return { id, model, parts, usage, reason };
}

/** Turns parts of a whole response into the events that would have streamed them. */
export function contentEvents(parts: readonly Part[]): ModelEvent[] {
  return parts.flatMap(eventsOf);
}

/** An endpoint that calls tools may still report a plain end. */
export function reasonWithCalls(reason: StopReason, called: boolean): StopReason {
  return reason === "end" && called ? "tool_call" : reason;
}

type ContentEvent = Extract<ModelEvent, { type: "text" | "thinking" | "tool_start" | "tool_input" }>;

function addTo(parts: Part[], event: ContentEvent): void {
  const last = parts.at(-1);
  if (event.type === "tool_start") {
    parts.push({ type: "tool_call", id: event.id, name: event.name, input: "" });
  } else if (event.type === "tool_input") {
    if (last?.type === "tool_call") parts[parts.length - 1] = { ...last, input: last.input + event.text };
  } else if (event.type === "text") {
    if (last?.type === "text") parts[parts.length - 1] = { ...last, text: last.text + event.text };
    else if (event.text !== "") parts.push({ type: "text", text: event.text });
  } else if (last?.type === "thinking" && last.signature === "") {
    parts[parts.length - 1] = { ...last, text: last.text + event.text, signature: event.signature ?? "" };
  } else {
    parts.push({ type: "thinking", text: event.text, signature: event.signature ?? "" });
  }
}

function eventsOf(part: Part): ModelEvent[] {
  if (part.type === "text") return part.text === "" ? [] : [part];
  if (part.type === "thinking") {
    if (part.text === "" && part.signature === "") return [];
    return [{ type: "thinking", text: part.text, ...(part.signature === "" ? {} : { signature: part.signature }) }];
  }
  if (part.type !== "tool_call") return [];
  return [
    { type: "tool_start", id: part.id, name: part.name },
    ...(part.input === "" ? [] : [{ type: "tool_input", text: part.input } as const]),
  ];
}
