import type { ModelEvent, ModelRequest, Part, ToolDefinition } from "./conversation.ts";
import { parseObject } from "./parse.ts";

/** In a dialect whose tools take only JSON, a free-text tool takes its text in one field. */
export const freeTextSchema = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

export function freeTextTools(tools: readonly ToolDefinition[]): ReadonlySet<string> {
  return new Set(tools.filter(({ freeText }) => freeText).map(({ name }) => name));
}

/** Returns a call's input as JSON, for a dialect that has no other calls. */
export function inputAsJson(call: Extract<Part, { type: "tool_call" }>, freeText: ReadonlySet<string>): string {
  if (freeText.has(call.name)) return JSON.stringify({ input: call.input });
  return call.input === "" ? "{}" : call.input;
}

/** For a dialect whose calls take only objects: a model may have called a tool with something else. */
export function toolInput(json: string): Record<string, unknown> {
  return parseObject(json === "" ? "{}" : json) ?? { input: json };
}

/** Unwraps the text of free-text calls. The text is whole only at the call's end, so it comes in one piece. */
export function freeTextReader(request: ModelRequest | undefined): (events: readonly ModelEvent[]) => ModelEvent[] {
  const names = freeTextTools(request?.tools ?? []);
  let held: string | undefined;
  if (names.size === 0) return (events) => [...events];

  return (events) =>
    events.flatMap((event): ModelEvent[] => {
      if (event.type === "tool_input" && held !== undefined) {
        held += event.text;
        return [];
      }
      if (event.type === "usage") return [event];
      const done: ModelEvent[] = held === undefined ? [] : [{ type: "tool_input", text: textOf(held) }];
      held = event.type === "tool_start" && names.has(event.name) ? "" : undefined;
      return [...done, event];
    });
}

function textOf(json: string): string {
  const input = parseObject(json)?.["input"];
  return typeof input === "string" ? input : json;
}
