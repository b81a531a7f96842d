import type { Message, ModelRequest, ToolDefinition } from "../dialects/conversation.ts";
import type { ScriptedRequest, ToolResult } from "./program.ts";

/** Turns a request into what programs see. */
export function scriptedRequest(request: ModelRequest): ScriptedRequest {
  const { prompts, step } = readPrompts(request.messages);
  const answerTool = demandedTool(request);
  return {
    model: lastPathPart(request.model),
    system: request.system,
    prompt: prompts[0] ?? "",
    lastPrompt: prompts.at(-1) ?? "",
    step,
    tools: offeredTools(request).map((tool) => tool.name),
    results: lastResults(request.messages),
    answerSchema: request.answerSchema ?? (answerTool && { name: answerTool.name, schema: answerTool.schema }),
    workdir: findWorkdir(request),
    request,
  };
}

/** The tools that the model is free to call. */
export function offeredTools(request: ModelRequest): readonly ToolDefinition[] {
  return request.toolChoice === "none" || demandedTool(request) ? [] : request.tools;
}

/** The one tool that the answer must call: how clients get a structured answer from a model without another way. */
export function demandedTool(request: ModelRequest): ToolDefinition | undefined {
  const { toolChoice, tools } = request;
  if (typeof toolChoice === "object") return tools.find((tool) => tool.name === toolChoice.name);
  return toolChoice === "required" && tools.length === 1 ? tools[0] : undefined;
}

/** All texts of one message between tool results are one prompt. */
function readPrompts(messages: readonly Message[]): { prompts: string[]; step: number } {
  const prompts: string[] = [];
  let step = 0;
  for (const message of messages) {
    if (message.role !== "user") continue;
    let continues = false;
    for (const part of message.parts) {
      if (part.type === "tool_result") {
        step++;
        continues = false;
      } else if (part.type === "text" && !isAddedByAgent(part.text)) {
        if (continues) prompts.push(`${prompts.pop()}\n${part.text}`);
        else prompts.push(part.text);
        continues = true;
        step = 0;
      }
    }
  }
  return { prompts, step };
}

/** Agents add reminders and their environment in a tag beside the user's words. */
function isAddedByAgent(text: string): boolean {
  const trimmed = text.trim();
  const tag = /^<([a-z][\w-]*)>/i.exec(trimmed)?.[1];
  return trimmed === "" || (tag !== undefined && trimmed.endsWith(`</${tag}>`)) || trimmed.startsWith("# AGENTS.md ");
}

function lastResults(messages: readonly Message[]): ToolResult[] {
  const lastAnswer = messages.findLastIndex((message) => message.role === "assistant");
  const names = new Map(
    messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_call" ? [[part.id, part.name]] : []))),
  );
  return messages
    .slice(lastAnswer + 1)
    .flatMap(({ parts }) => parts)
    .flatMap((part) =>
      part.type === "tool_result" ? [{ tool: names.get(part.id) ?? "", text: part.text, isError: part.isError }] : [],
    );
}

const statedWorkdir = /(?:working directory|\bcwd)[^\n:>=/]{0,20}[:>=]\s*`?(\/[^\s<`"',]*)/i;

function findWorkdir({ system, messages }: ModelRequest): string | undefined {
  const texts = messages.flatMap(({ role, parts }) =>
    role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  );
  for (const text of [system, ...texts]) {
    const workdir = statedWorkdir.exec(text)?.[1];
    if (workdir !== undefined) return workdir;
  }
  return undefined;
}

function lastPathPart(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1);
}
