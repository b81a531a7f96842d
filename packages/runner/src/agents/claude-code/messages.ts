import { SlipwayError } from "@slipway/contract";
import { z } from "zod";

const toolUse = z.object({
  type: z.literal("tool_use"),
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
});
const toolResult = z.object({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.unknown(),
  is_error: z.boolean().nullish(),
});
const otherBlock = z.object({ type: z.string() });
const tokens = z.int().min(0).default(0);
const modelUsage = z.object({
  inputTokens: tokens,
  outputTokens: tokens,
  cacheReadInputTokens: tokens,
  cacheCreationInputTokens: tokens,
  costUSD: z.number().min(0).default(0),
  costBasis: z.string().optional(),
});

/** The lines of standard output that Slipway reads. It ignores other types and fields. */
const schemas = {
  init: z.object({
    type: z.literal("system"),
    subtype: z.literal("init"),
    session_id: z.string(),
    model: z.string().optional(),
    claude_code_version: z.string().optional(),
    mcp_servers: z.array(z.object({ name: z.string(), status: z.string() })).default([]),
  }),
  status: z.object({
    type: z.literal("system"),
    subtype: z.literal("status"),
    status: z.string().nullish(),
  }),
  api_retry: z.object({
    type: z.literal("system"),
    subtype: z.literal("api_retry"),
    error: z.string().nullish(),
    error_status: z.number().nullish(),
  }),
  stream_event: z.object({
    type: z.literal("stream_event"),
    /** The tool call of the sub-agent. Null for the agent itself. */
    parent_tool_use_id: z.string().nullish(),
    event: z.object({
      type: z.string(),
      delta: z
        .object({
          type: z.string().optional(),
          text: z.string().optional(),
          thinking: z.string().optional(),
          stop_reason: z.string().nullish(),
        })
        .optional(),
    }),
  }),
  assistant: z.object({
    type: z.literal("assistant"),
    message: z.object({ content: z.array(z.union([toolUse, otherBlock])) }),
    /** The class of a failed model call. */
    error: z.string().nullish(),
  }),
  user: z.object({
    type: z.literal("user"),
    message: z.object({ content: z.union([z.string(), z.array(z.union([toolResult, otherBlock]))]) }),
  }),
  control_request: z.object({
    type: z.literal("control_request"),
    request_id: z.string(),
    request: z.object({
      subtype: z.string(),
      tool_name: z.string().optional(),
      input: z.record(z.string(), z.unknown()).optional(),
    }),
  }),
  result: z.object({
    type: z.literal("result"),
    subtype: z.string(),
    is_error: z.boolean(),
    result: z.string().nullish(),
    errors: z.array(z.string()).default([]),
    terminal_reason: z.string().nullish(),
    api_error: z.string().nullish(),
    api_error_status: z.number().nullish(),
    /** `total_cost_usd` would include the conversation's earlier cost. */
    model_usage_since_last_result: z.record(z.string(), modelUsage).default({}),
  }),
};
type Schemas = typeof schemas;
export type ClaudeMessage = z.output<Schemas[keyof Schemas]>;
export type ClaudeResult = z.output<Schemas["result"]>;
export type ClaudeControlRequest = z.output<Schemas["control_request"]>;

const kindOfLine = z.object({ type: z.string(), subtype: z.string().optional() });

/** Undefined: a message that does not matter here. Fails with `invalid_answer` if the line is not a message. */
export function readMessage(line: string): ClaudeMessage | undefined {
  const value = parseJson(line);
  const kind = kindOfLine.safeParse(value);
  if (!kind.success) throw unreadable(line);
  const name = kind.data.type === "system" ? kind.data.subtype : kind.data.type;
  if (name === undefined || !Object.hasOwn(schemas, name)) return undefined;
  const message = schemas[name as keyof Schemas].safeParse(value);
  if (!message.success) throw unreadable(line, message.error);
  return message.data;
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw unreadable(line, error);
  }
}

function unreadable(line: string, cause?: unknown): SlipwayError {
  return new SlipwayError("invalid_answer", `Claude Code broke its protocol: ${line.slice(0, 200)}`, {
    cause,
  });
}
