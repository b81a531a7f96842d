import type { AgentEvent } from "@slipway/contract";
import { jsonSchema, type Tool, type ToolSet, tool } from "ai";
import { longText } from "../../system/text.ts";
import type { TeamTool } from "../driver.ts";
import type { Conversation } from "./conversation.ts";
import type { Permissions } from "./permissions.ts";
import type { BuiltinTool, ToolOutcome } from "./tools/tool.ts";

export interface ToolsetOptions {
  readonly tools: readonly BuiltinTool[];
  /** Undefined: everything is allowed. */
  readonly permissions: Permissions | undefined;
  readonly conversation: Conversation;
  /** Of the current turn. */
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void;
}

/** The tools in the AI SDK's format. */
export interface Toolset {
  readonly tools: ToolSet;
  /** Resolves when no call is under way. */
  settled(): Promise<void>;
}

export function createToolset(options: ToolsetOptions): Toolset {
  const running = new Set<Promise<ToolOutcome>>();
  const bind = (entry: BuiltinTool): Tool =>
    tool({
      description: entry.description,
      inputSchema: entry.schema,
      async execute(input: unknown, { toolCallId }: { toolCallId: string }) {
        const call = perform(entry, toolCallId, input, options);
        running.add(call);
        return await call.finally(() => running.delete(call));
      },
      toModelOutput: ({ output }: { output: ToolOutcome }) => ({ type: "text", value: output.text }),
    });
  return {
    tools: Object.fromEntries(options.tools.map((entry) => [entry.name, bind(entry)])),
    settled: async () => void (await Promise.allSettled(running)),
  };
}

export function asBuiltinTool({ name, description, schema, run }: TeamTool): BuiltinTool {
  return {
    name,
    kind: "other",
    description,
    acts: false,
    schema: jsonSchema(schema),
    run: async (input) => ({ text: await run(input), ok: true }),
  };
}

/** Makes one call. Saves the call before making it, and its result before telling the model. */
async function perform(entry: BuiltinTool, id: string, input: unknown, options: ToolsetOptions): Promise<ToolOutcome> {
  const { conversation, signal, emit } = options;
  const event = { type: "tool", id, name: entry.name, kind: entry.kind } as const;
  await conversation.callStarted({ id, name: entry.name, input });
  emit({ ...event, phase: "start", input: inputText(input) });
  const outcome = await attempt(async () => {
    return (await refusal(entry, id, input, options)) ?? (await entry.run(input, { signal }));
  });
  await conversation.callEnded(id, outcome.text);
  emit({ ...event, phase: "end", output: longText(outcome.text), ok: outcome.ok });
  return outcome;
}

async function refusal(
  { acts, name: tool }: BuiltinTool,
  id: string,
  input: unknown,
  { permissions, signal, emit }: ToolsetOptions,
): Promise<ToolOutcome | undefined> {
  if (permissions === undefined || !acts) return undefined;
  const answer = permissions.ask(id, signal);
  emit({ type: "permission", id, tool, input: inputText(input) });
  const reason = await answer;
  return reason === undefined ? undefined : { text: `The user did not allow it: ${reason}`, ok: false };
}

/** The model reads a failed call; the turn continues. */
async function attempt(run: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await run();
  } catch (error) {
    return { text: `Failed: ${error instanceof Error ? error.message : String(error)}`, ok: false };
  }
}

export function inputText(input: unknown): string {
  return longText(JSON.stringify(input) ?? "");
}
