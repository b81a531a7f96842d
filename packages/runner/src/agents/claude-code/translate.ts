import { type AgentEvent, type ClaimedEnd, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import { idText, longText, shortText } from "../../system/text.ts";
import { teamServer } from "../driver.ts";
import { planEvent } from "../program/events.ts";
import { failureEnd } from "../program/failure.ts";
import type { ClaudeMessage, ClaudeResult } from "./messages.ts";

/** Translates one turn's messages into events. */
export interface Translation {
  read(message: ClaudeMessage): AgentEvent[];
  /** How the last result ends the turn. Undefined before the first. */
  readonly end: ClaimedEnd | undefined;
}

type Message<T extends ClaudeMessage["type"]> = Extract<ClaudeMessage, { type: T }>;
type Tool = Extract<AgentEvent, { type: "tool" }>;

export function createTranslation(): Translation {
  const toolNames = new Map<string, string>();
  /** Stop reason of the last response. `open` while it streams. */
  let stopReason: string | undefined;
  let errorClass: string | undefined;
  let end: ClaimedEnd | undefined;

  const readStream = ({ event: { type, delta }, parent_tool_use_id }: Message<"stream_event">): AgentEvent[] => {
    if (parent_tool_use_id != null) return [];
    // For a cut stream, the program makes up a `message_stop`, but no `message_delta` before it.
    if (type === "message_start") {
      stopReason = "open";
      end = undefined;
    }
    if (type === "message_delta") stopReason = delta?.stop_reason ?? "open";
    if (delta?.type === "text_delta" && delta.text) return [text("answer", delta.text)];
    if (delta?.type === "thinking_delta" && delta.thinking) return [text("thinking", delta.thinking)];
    return [];
  };
  const readAssistant = ({ message, error }: Message<"assistant">): AgentEvent[] => {
    errorClass = error ?? undefined;
    return message.content.flatMap((block): AgentEvent[] => {
      if (!("input" in block)) return [];
      toolNames.set(block.id, block.name);
      const start = { ...toolEvent("start", block.id, block.name), input: longText(JSON.stringify(block.input)) };
      return block.name === "TodoWrite" ? [start, ...planOf(block.input)] : [start];
    });
  };
  const readUser = ({ message }: Message<"user">): AgentEvent[] => {
    if (typeof message.content === "string") return [];
    return message.content.flatMap((block): AgentEvent[] => {
      if (!("tool_use_id" in block)) return [];
      const tool = toolEvent("end", block.tool_use_id, toolNames.get(block.tool_use_id) ?? "unknown");
      return [{ ...tool, ok: block.is_error !== true, output: longText(outputText(block.content)) }];
    });
  };
  return {
    get end() {
      return end;
    },
    read(message) {
      switch (message.type) {
        case "system":
          return [message.subtype === "init" ? sessionOf(message) : statusOf(message)];
        case "stream_event":
          return readStream(message);
        case "assistant":
          return readAssistant(message);
        case "user":
          return readUser(message);
        case "control_request":
          return permissionOf(message);
        case "result":
          end = endOf(message, stopReason, errorClass);
          return [usageOf(message)];
      }
    },
  };
}

function endOf(result: ClaudeResult, stopReason: string | undefined, errorClass: string | undefined): ClaimedEnd {
  const words = result.result ?? "";
  if (result.terminal_reason?.startsWith("aborted")) return claimEnd("cancelled", words);
  if (result.subtype === "error_max_turns") return claimEnd("max_steps", words);
  if (result.subtype === "error_max_budget_usd") return claimEnd("budget", words);
  if (stopReason === "refusal") return claimEnd("refused", words);
  if (result.is_error || result.subtype !== "success") return failureOf(result, stopReason, errorClass);
  if (stopReason === "open" || stopReason === "max_tokens") {
    return claimEnd("truncated", "The model's last response was cut off.");
  }
  return claimEnd("completed", words);
}

const todoInput = z.object({
  todos: z.array(z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed"]) })),
});

/** The list that a call of TodoWrite sets. The model writes its input: anything else is not a plan. */
function planOf(input: unknown): AgentEvent[] {
  const { data } = todoInput.safeParse(input);
  return data ? [planEvent(data.todos.map(({ content, status }) => ({ text: content, status })))] : [];
}

const reasonsByClass: Readonly<Record<string, ClaimedEnd["reason"]>> = {
  authentication_failed: "auth",
  billing_error: "auth",
  rate_limit: "rate_limited",
  overloaded: "overloaded",
  server_error: "overloaded",
  model_not_found: "model_not_found",
  invalid_request: "invalid_request",
  max_output_tokens: "truncated",
};

function failureOf(result: ClaudeResult, stopReason: string | undefined, errorClass: string | undefined): ClaimedEnd {
  const message = result.result ?? result.errors.join(" ");
  if (message.startsWith("No conversation found")) return claimEnd("session_lost", message);
  const status = result.api_error_status ?? undefined;
  if (status !== undefined || result.api_error !== "connection_failed") {
    return failureEnd({ status, reason: reasonsByClass[errorClass ?? ""], message });
  }
  return failureEnd({ reason: stopReason === "open" ? "truncated" : "network", message });
}

function sessionOf(message: Extract<ClaudeMessage, { subtype: "init" }>): AgentEvent {
  // The program continues without a server that failed to start, and an agent without the run's tools does the wrong
  // work.
  if (message.mcp_servers.some(({ name, status }) => name === teamServer && status === "failed")) {
    throw new SlipwayError("component_missing", "The run's own tools did not start.");
  }
  return {
    type: "session",
    session: idText(message.session_id),
    ...(message.model !== undefined && { model: shortText(message.model) }),
    ...(message.claude_code_version !== undefined && { version: shortText(message.claude_code_version) }),
  };
}

function statusOf(message: Extract<ClaudeMessage, { subtype: "status" | "api_retry" }>): AgentEvent {
  if (message.subtype === "status") {
    return { type: "status", status: message.status === "compacting" ? "compacting" : "thinking" };
  }
  return {
    type: "status",
    status: "retrying",
    detail: shortText(`${message.error ?? "unknown"} ${message.error_status ?? ""}`.trim()),
  };
}

function permissionOf({ request_id, request }: Message<"control_request">): AgentEvent[] {
  if (request.subtype !== "can_use_tool") return [];
  const input = longText(JSON.stringify(request.input ?? {}));
  return [{ type: "permission", id: idText(request_id), tool: shortText(request.tool_name ?? "unknown"), input }];
}

function usageOf({ model_usage_since_last_result }: ClaudeResult): AgentEvent {
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  let costUsd: number | undefined = 0;
  for (const model of Object.values(model_usage_since_last_result)) {
    usage.input += model.inputTokens;
    usage.output += model.outputTokens;
    usage.cacheRead += model.cacheReadInputTokens;
    usage.cacheWrite += model.cacheCreationInputTokens;
    costUsd = costUsd === undefined || model.costBasis === "unknown" ? undefined : costUsd + model.costUSD;
  }
  return { type: "usage", usage, ...(costUsd !== undefined && { costUsd }) };
}

const kindsByTool: Readonly<Record<string, Tool["kind"]>> = {
  Write: "edit",
  Edit: "edit",
  NotebookEdit: "edit",
  Bash: "execute",
  Read: "read",
  Glob: "search",
  Grep: "search",
};

function toolEvent(phase: Tool["phase"], id: string, name: string): Tool {
  return { type: "tool", phase, id: idText(id), name: shortText(name), kind: kindsByTool[name] ?? "other" };
}

function text(channel: "answer" | "thinking", words: string): AgentEvent {
  return { type: "text", channel, text: longText(words) };
}

function outputText(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}
