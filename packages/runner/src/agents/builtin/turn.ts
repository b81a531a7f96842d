import type { AgentEvent } from "@slipway/contract";
import { type FinishReason, isStepCount, type LanguageModel, ToolLoopAgent } from "ai";
import type { FinalEvent } from "../../supervise.ts";
import { compact } from "./compaction/run.ts";
import type { Conversation } from "./conversation.ts";
import { failureOf } from "./failure.ts";
import { instructionsOf, withCacheMarks } from "./instructions.ts";
import type { Permissions } from "./permissions.ts";
import type { BuiltinTool } from "./tools/tool.ts";
import { createToolset } from "./toolset.ts";
import { eventOf, finalEvent, isWhole } from "./translate.ts";

/** Every model behind the gateway can say that much at once. */
const maxOutputTokens = 16_000;

export interface Turn {
  readonly model: LanguageModel;
  readonly workdir: string;
  readonly instructions: string;
  readonly tools: readonly BuiltinTool[];
  readonly permissions: Permissions | undefined;
  readonly conversation: Conversation;
  readonly maxSteps: number;
  readonly compactAtTokens: number;
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void;
}

/** Works until the model is done. Answers after every call has ended and the conversation is on disk. */
export async function runTurn(turn: Turn): Promise<FinalEvent> {
  const { conversation, signal, maxSteps } = turn;
  for (let steps = 0; ; ) {
    const loop = await runLoop({ ...turn, maxSteps: maxSteps - steps });
    steps += loop.steps;
    if (signal.aborted) return { type: "done", outcome: "cancelled", text: "" };
    const isDone = loop.final.type === "done" && loop.final.outcome === "completed";
    if (!isDone || steps >= maxSteps || !conversation.takeWaiting()) return loop.final;
  }
}

async function runLoop(turn: Turn): Promise<{ readonly final: FinalEvent; readonly steps: number }> {
  const { conversation, signal, emit } = turn;
  const toolset = createToolset(turn);
  const agent = new ToolLoopAgent({
    model: turn.model,
    instructions: instructionsOf(turn.workdir, turn.instructions),
    tools: toolset.tools,
    maxOutputTokens,
    // The gateway tries again by itself.
    maxRetries: 0,
    stopWhen: isStepCount(turn.maxSteps),
    prepareStep: () => prepareStep(turn),
    onStepEnd: async ({ finishReason, response }) => {
      if (isWhole(finishReason)) await conversation.stepEnded(response.messages);
    },
    // Errors are in the stream.
    onError: () => {},
  });
  const seen = {
    steps: 0,
    answer: "",
    reason: undefined as FinishReason | undefined,
    failure: undefined as FinalEvent | undefined,
  };
  try {
    const { stream } = await agent.stream({ messages: withCacheMarks(conversation.messages), abortSignal: signal });
    for await (const part of stream) {
      if (part.type === "start-step") Object.assign(seen, { steps: seen.steps + 1, answer: "" });
      if (part.type === "text-delta") seen.answer += part.text;
      if (part.type === "finish") seen.reason = part.finishReason;
      if (part.type === "error") seen.failure ??= failureOf(part.error);
      const event = eventOf(part);
      if (event !== undefined) emit(event);
    }
  } catch (error) {
    seen.failure ??= failureOf(error);
  }
  await toolset.settled();
  await conversation.interrupted();
  return { final: seen.failure ?? finalEvent(seen.reason, seen.answer), steps: seen.steps };
}

async function prepareStep(turn: Turn) {
  const { conversation, model, compactAtTokens: limitTokens, signal, emit } = turn;
  conversation.assertSaved();
  conversation.takeWaiting();
  const onStart = () => emit({ type: "status", status: "compacting" });
  const shorter = await compact(conversation.messages, { model, limitTokens, signal, onStart });
  if (shorter !== undefined) await conversation.replace(shorter);
  return { messages: withCacheMarks(conversation.messages) };
}
