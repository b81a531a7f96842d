import { createHash } from "node:crypto";
import type { ContentChunk, PromptResponse, SessionUpdate, ToolCallContent, ToolKind } from "@agentclientprotocol/sdk";
import type { AgentEvent, ClaimedEnd } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import { idText, longText, shortText } from "../../system/text.ts";
import { planEvent } from "../program/events.ts";
import { endOfFailure, sessionFailure } from "./session-failure.ts";

/** Translates one turn's updates into events. */
export interface Translation {
  read(update: SessionUpdate): AgentEvent[];
  end(response: PromptResponse): ClaimedEnd;
  /** Some of the model's last response has arrived. */
  readonly begun: boolean;
}

type Tool = Extract<AgentEvent, { type: "tool" }>;
type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

interface KnownTool {
  readonly id: string;
  readonly name: string;
  readonly kind: Tool["kind"];
  phase: "announced" | "running" | "ended";
  input: unknown;
  output: string;
}

export function createTranslation(): Translation {
  const tools = new Map<string, KnownTool>();
  let begun = false;
  let answer: { readonly message: string | undefined; readonly text: string } = { message: undefined, text: "" };

  const readTool = (update: ToolUpdate): AgentEvent[] => {
    const events: AgentEvent[] = [];
    begun = update.status !== "completed";
    // Some agents update a call without announcing it.
    const tool = tools.get(update.toolCallId) ?? knownTool(update);
    tools.set(update.toolCallId, tool);
    tool.input = update.rawInput ?? tool.input ?? { title: update.title };
    tool.output = longText(outputText(update) ?? tool.output + terminalText(update));
    // An announced call may not have its input yet.
    if (tool.phase === "announced" && update.status !== "pending") {
      tool.phase = "running";
      events.push({ ...toolEvent("start", tool), input: jsonText(tool.input) });
      answer = { message: undefined, text: "" };
    }
    if (tool.phase === "running" && (update.status === "completed" || update.status === "failed")) {
      tool.phase = "ended";
      events.push({ ...toolEvent("end", tool), ok: update.status === "completed", output: tool.output });
    }
    return events;
  };
  const readText = (channel: "answer" | "thinking", { content, messageId }: ContentChunk): AgentEvent[] => {
    if (content.type !== "text" || content.text === "") return [];
    begun = true;
    if (channel === "answer") {
      const message = messageId ?? undefined;
      answer = { message, text: longText((message === answer.message ? answer.text : "") + content.text) };
    }
    return [{ type: "text", channel, text: longText(content.text) }];
  };
  return {
    read(update) {
      switch (update.sessionUpdate) {
        case "agent_message_chunk":
          return readText("answer", update);
        case "agent_thought_chunk":
          return readText("thinking", update);
        case "tool_call":
        case "tool_call_update":
          return readTool(update);
        case "plan":
          return [planEvent(update.entries.map(({ content, status }) => ({ text: content, status })))];
        case "compaction_update":
          return [{ type: "status", status: "compacting" }];
        case "session_info_update": {
          const failure = sessionFailure(update._meta);
          return failure?.isWarning ? [{ type: "status", status: "retrying", detail: shortText(failure.title) }] : [];
        }
        default:
          return [];
      }
    },
    end({ stopReason, _meta }) {
      const failure = sessionFailure(_meta);
      return failure ? endOfFailure(failure, begun) : endOf(stopReason, answer.text);
    },
    get begun() {
      return begun;
    },
  };
}

function endOf(stopReason: PromptResponse["stopReason"], text: string): ClaimedEnd {
  switch (stopReason) {
    case "end_turn":
      return claimEnd("completed", text);
    case "cancelled":
      return claimEnd("cancelled", text);
    case "refusal":
      return claimEnd("refused", text);
    case "max_turn_requests":
      return claimEnd("max_steps", text);
    case "max_tokens":
      return claimEnd("truncated", "The model's last response was cut off.");
    default:
      return claimEnd("protocol", `The agent stopped for an unknown reason: ${stopReason}`);
  }
}

const kinds: Readonly<Record<string, Tool["kind"]>> = {
  edit: "edit",
  delete: "edit",
  move: "edit",
  execute: "execute",
  read: "read",
  search: "search",
} satisfies Partial<Record<ToolKind, Tool["kind"]>>;

function kindOf(kind: ToolKind | null | undefined): Tool["kind"] {
  return kinds[kind ?? ""] ?? "other";
}

function knownTool({ toolCallId, name, title, kind }: ToolUpdate): KnownTool {
  const words = shortText(name || title || "unknown");
  return { id: idText(toolCallId), name: words, kind: kindOf(kind), phase: "announced", input: undefined, output: "" };
}

function toolEvent(phase: Tool["phase"], { id, name, kind }: KnownTool): Tool {
  return { type: "tool", phase, id, name, kind };
}

/** Returns the whole output so far. Undefined if the update says nothing about it. */
function outputText({ content, rawOutput }: ToolUpdate): string | undefined {
  const texts = (content ?? []).flatMap(contentText);
  if (texts.length > 0) return texts.join("\n");
  return rawOutput == null ? undefined : jsonText(rawOutput);
}

function contentText(content: ToolCallContent): string[] {
  if (content.type === "diff") return [`${content.path} changed to ${digestOf(content.newText)}`];
  return content.type === "content" && content.content.type === "text" ? [content.content.text] : [];
}

/** Gemini CLI does not report what it writes. The digest tells successive edits of a file from a loop. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** Codex reports a command's output beside the protocol, to a client that declares this. */
export const terminalOutputCapability = { terminal_output_delta: true };
const terminalMeta = z.object({ terminal_output_delta: z.object({ data: z.string() }) });

function terminalText({ _meta }: ToolUpdate): string {
  return terminalMeta.safeParse(_meta).data?.terminal_output_delta.data ?? "";
}

function jsonText(value: unknown): string {
  return longText(typeof value === "string" ? value : JSON.stringify(value ?? {}));
}
