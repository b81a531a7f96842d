import { z } from "zod";
import { asObject, type Json } from "../dialects/content.ts";
import type { AgentDialectName } from "../dialects/dialect.ts";
import { jsonObject } from "../dialects/parse.ts";

/** Keeps the tools that the agent runs, with their known fields. A tool of another shape may run at the endpoint. */
export function agentTools(dialect: AgentDialectName, tools: readonly unknown[]): Json[] {
  return tools.flatMap((tool): Json[] => {
    const { data } = toolShapes[dialect].safeParse(tool);
    return data === undefined ? [] : [data];
  });
}

/** Entries of the deprecated `functions` field of the chat dialect. */
export function agentFunctions(functions: readonly unknown[]): Json[] {
  return functions.flatMap((one) => plainFunction.safeParse(one).data ?? []);
}

/** Whether the choice names only tools that the agent runs. */
export function choosesAgentTools(choice: unknown): boolean {
  if (choice === undefined || choice === null) return true;
  if (typeof choice === "string") return choiceWords.has(choice);
  const { type, tools, allowed_tools } = asObject(choice);
  const allowed = tools ?? asObject(allowed_tools)["tools"] ?? [];
  const types = [type, ...(Array.isArray(allowed) ? allowed.map((tool) => asObject(tool)["type"]) : [undefined])];
  return types.every((one) => choiceTypes.has(one));
}

const choiceWords: ReadonlySet<string> = new Set(["auto", "any", "none", "required"]);
const choiceTypes: ReadonlySet<unknown> = new Set([
  ...["auto", "any", "none", "tool", "function", "custom", "allowed_tools", "apply_patch", "local_shell"],
]);

const named = { name: z.string().min(1).max(256), description: z.string().nullish() };
const flag = z.boolean().nullish();

const plainFunction = z.object({ ...named, parameters: jsonObject.nullish(), strict: flag });
const freeText = z.object({ ...named, format: jsonObject.nullish() });

const responsesFunction = z.object({ type: z.literal("function"), ...plainFunction.shape, defer_loading: flag });
const responsesCustom = z.object({ type: z.literal("custom"), ...freeText.shape, defer_loading: flag });

const toolShapes: Readonly<Record<AgentDialectName, z.ZodType<Json>>> = {
  anthropic: z.union([
    z.object({
      type: z.literal("custom").nullish(),
      ...named,
      input_schema: jsonObject,
      // A long-lived cache has a price that is not in the table.
      cache_control: z.object({ type: z.literal("ephemeral") }).nullish(),
      strict: flag,
      defer_loading: flag,
      eager_input_streaming: flag,
      input_examples: z.array(z.unknown()).nullish(),
    }),
    z.object({
      type: z.string().regex(/^(bash|text_editor|computer|memory)_\d{8}$/),
      name: named.name,
      cache_control: z.object({ type: z.literal("ephemeral") }).nullish(),
      display_width_px: z.number().nullish(),
      display_height_px: z.number().nullish(),
      display_number: z.number().nullish(),
      max_characters: z.number().nullish(),
      enable_zoom: flag,
    }),
  ]),
  chat: z.union([
    z.object({
      type: z.literal("function"),
      function: plainFunction,
      cache_control: z.object({ type: z.literal("ephemeral") }).nullish(),
    }),
    z.object({ type: z.literal("custom"), custom: freeText }),
  ]),
  responses: z.union([
    responsesFunction,
    responsesCustom,
    z.object({ type: z.enum(["local_shell", "apply_patch"]) }),
    z.object({
      type: z.literal("namespace"),
      ...named,
      tools: known(z.union([responsesFunction, responsesCustom])),
    }),
  ]),
  google: z.object({
    functionDeclarations: known(
      z.object({
        ...named,
        parameters: jsonObject.nullish(),
        parametersJsonSchema: jsonObject.nullish(),
      }),
    ),
  }),
};

/** Keeps the entries that have this shape. */
function known<S extends z.ZodType>(shape: S) {
  return z.array(z.unknown()).transform((all) =>
    all.flatMap((one): z.output<S>[] => {
      const { data } = shape.safeParse(one);
      return data === undefined ? [] : [data];
    }),
  );
}
