import type { AgentEvent } from "@slipway/contract";
import type { FlexibleSchema } from "ai";
import type { z } from "zod";

export type ToolKind = Extract<AgentEvent, { type: "tool" }>["kind"];

/** What the model and the events learn of a call. */
export interface ToolOutcome {
  readonly text: string;
  readonly ok: boolean;
}

/** A tool of the built-in agent. An error it throws is reported to the model as the call's failure. */
export interface BuiltinTool {
  readonly name: string;
  readonly kind: ToolKind;
  readonly description: string;
  readonly schema: FlexibleSchema;
  /** It changes something, so it may need the user's permission. */
  readonly acts: boolean;
  run(input: unknown, options: { readonly signal: AbortSignal }): Promise<ToolOutcome>;
}

export interface Workplace {
  readonly workdir: string;
  /** For programs that tools start. */
  readonly environment: Readonly<Record<string, string>>;
  /** The limit for commands: a longer one would make the agent look stuck. */
  readonly maxCommandMs: number;
}

export function defineTool<Input>(definition: {
  readonly name: string;
  readonly kind: ToolKind;
  readonly description: string;
  readonly schema: z.ZodType<Input>;
  run(input: Input, options: { readonly signal: AbortSignal }): Promise<ToolOutcome>;
}): BuiltinTool {
  const { schema, kind, run } = definition;
  const acts = kind === "edit" || kind === "execute";
  return { ...definition, acts, run: async (input, options) => await run(schema.parse(input), options) };
}
