import { z } from "zod";
import type { ModelRequest, Part, ToolDefinition } from "../conversation.ts";
import { byType, jsonObject } from "../parse.ts";

const named = { name: z.string(), description: z.string().nullish() };
const singleTools = {
  function: { ...named, parameters: jsonObject.nullish() },
  custom: { ...named, format: byType({ grammar: { syntax: z.string(), definition: z.string() } }).nullish() },
};
const singleTool = byType(singleTools);

/** Tools that the vendor runs are left out. */
export const toolSchema = byType({
  ...singleTools,
  namespace: { name: z.string(), tools: z.array(singleTool) },
});

export const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.enum(["function", "custom"]), name: z.string() }),
  z.object({ type: z.literal("allowed_tools"), mode: z.enum(["auto", "required"]) }),
  z.object({ type: z.string() }).transform(() => "auto" as const),
]);

export function readTool(tool: z.output<typeof toolSchema>): ToolDefinition[] {
  if (tool === undefined) return [];
  if (tool.type !== "namespace") return [readSingle(tool)];
  return tool.tools.flatMap((one) => {
    if (one === undefined) return [];
    const name = joinName(tool.name, one.name);
    return [{ ...readSingle(one), name, grouped: { namespace: tool.name, name: one.name } }];
  });
}

function readSingle(tool: NonNullable<z.output<typeof singleTool>>): ToolDefinition {
  const { name, description } = tool;
  if (tool.type === "function") {
    return { name, description: description ?? "", schema: tool.parameters ?? { type: "object", properties: {} } };
  }
  const grammar =
    tool.format == null ? "" : `\n\nIts input has this ${tool.format.syntax} grammar:\n${tool.format.definition}`;
  return { name, description: (description ?? "") + grammar, schema: {}, freeText: true };
}

type Call = { readonly call_id: string; readonly name: string; readonly namespace?: string | null | undefined } & (
  | { readonly type: "function_call"; readonly arguments: string }
  | { readonly type: "custom_tool_call"; readonly input: string }
);

export function readCall(call: Call): Part {
  const input = call.type === "function_call" ? call.arguments : call.input;
  return { type: "tool_call", id: call.call_id, name: joinName(call.namespace, call.name), input };
}

/** One name for a grouped tool, for dialects without groups. */
function joinName(namespace: string | null | undefined, name: string): string {
  if (!namespace) return name;
  return namespace.endsWith("_") || name.startsWith("_") ? `${namespace}${name}` : `${namespace}__${name}`;
}

export function readToolChoice(choice: z.output<typeof toolChoiceSchema>): ModelRequest["toolChoice"] {
  if (typeof choice === "string") return choice;
  return choice.type === "allowed_tools" ? choice.mode : { name: choice.name };
}

export function writeTool({ name, description, schema, freeText }: ToolDefinition): object {
  if (freeText) return { type: "custom", name, description };
  return { type: "function", name, description, parameters: schema, strict: false };
}

export function writeToolChoice(choice: ModelRequest["toolChoice"], tools: readonly ToolDefinition[]): unknown {
  if (typeof choice === "string") return choice;
  const freeText = tools.some((tool) => tool.name === choice.name && tool.freeText);
  return { type: freeText ? "custom" : "function", name: choice.name };
}
