import type { ModelEvent, ModelRequest, Part, ToolDefinition } from "./conversation.ts";
import { parseObject } from "./parse.ts";

/** Where a dialect has only tools that take JSON, a tool that takes free text takes it in one field. */
export const freeTextSchema = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

export function freeTextTools(tools: readonly ToolDefinition[]): ReadonlySet<string> {
  return new Set(tools.filter(({ freeText }) => freeText).map(({ name }) => name));
}

/** The JSON of a call, for a dialect that knows no other calls. */
export function inputAsJson(call: Extract<Part, { type: "tool_call" }>, freeText: ReadonlySet<string>): string {
  if (freeText.has(call.name)) return JSON.stringify({ input: call.input });
  return call.input === "" ? "{}" : call.input;
}

/** For a dialect whose calls have only objects: a model may have called a tool with something else. */
export function toolInput(json: string): Record<string, unknown> {
  return parseObject(json === "" ? "{}" : json) ?? { input: json };
}

/** Takes the text of free-text calls out of its field again. It is whole only at the call's end, so it comes at once. */
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
