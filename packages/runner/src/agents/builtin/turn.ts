import type { AgentEvent, ClaimedEnd } from "@slipway/contract";
import {
  type FinishReason,
  isStepCount,
  type LanguageModel,
  type TextStreamPart,
  ToolLoopAgent,
  type ToolSet,
} from "ai";
import { claimEnd } from "../../supervise/end.ts";
import { compact } from "./compaction/run.ts";
import type { Conversation } from "./conversation.ts";
import { failureOf } from "./failure.ts";
import { instructionsOf, withCacheMarks } from "./instructions.ts";
import type { Permissions } from "./permissions.ts";
import type { BuiltinTool } from "./tools/tool.ts";
import { createToolset } from "./toolset.ts";
import { endAfter, eventOf, isWhole } from "./translate.ts";

/** Enough for a long file in one call, and within most models' limits. */
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

/** Works until the model is done. Resolves after every call has ended and the conversation is saved. */
export async function runTurn(turn: Turn): Promise<ClaimedEnd> {
  const { conversation, signal, maxSteps } = turn;
  // A restart came between the answer and its report.
  if (conversation.lastAnswer !== undefined) return endAfter("stop", conversation.lastAnswer);
  for (let steps = 0; ; ) {
    const loop = await runLoop({ ...turn, maxSteps: maxSteps - steps });
    if (signal.aborted) return claimEnd("cancelled");
    steps += loop.steps;
    if (loop.end.reason !== "completed" || steps >= maxSteps || conversation.finish()) return loop.end;
  }
}

async function runLoop(turn: Turn): Promise<LoopEnd> {
  const { conversation, signal } = turn;
  const toolset = createToolset(turn);
  const agent = new ToolLoopAgent({
    model: turn.model,
    instructions: instructionsOf(turn.workdir, turn.instructions),
    tools: toolset.tools,
    maxOutputTokens,
    // The gateway retries.
    maxRetries: 0,
    stopWhen: isStepCount(turn.maxSteps),
    prepareStep: () => prepareStep(turn),
    onStepEnd: async ({ finishReason, response }) => {
      if (isWhole(finishReason)) await conversation.stepEnded(response.messages);
    },
    // Errors come in the stream.
    onError: () => {},
  });
  const { stream } = await agent.stream({ messages: withCacheMarks(conversation.messages), abortSignal: signal });
  const end = await readStream(stream, turn.emit);
  await toolset.settled();
  await conversation.closeStep();
  return end;
}

interface LoopEnd {
  readonly end: ClaimedEnd;
  /** Finished steps. */
  readonly steps: number;
}

async function readStream(stream: AsyncIterable<TextStreamPart<ToolSet>>, emit: Turn["emit"]): Promise<LoopEnd> {
  let steps = 0;
  let answer = "";
  let reason: FinishReason | undefined;
  let failure: ClaimedEnd | undefined;
  try {
    for await (const part of stream) {
      if (part.type === "start-step") answer = "";
      if (part.type === "text-delta") answer += part.text;
      if (part.type === "finish-step") steps++;
      if (part.type === "finish") reason = part.finishReason;
      if (part.type === "error") failure ??= failureOf(part.error);
      const event = eventOf(part);
      if (event !== undefined) emit(event);
    }
  } catch (error) {
    failure ??= failureOf(error);
  }
  return { end: failure ?? endAfter(reason, answer), steps };
}

async function prepareStep({ conversation, model, compactAtTokens: limitTokens, signal, emit }: Turn) {
  conversation.assertSaved();
  conversation.listen();
  const onStart = () => emit({ type: "status", status: "compacting" });
  const shorter = await compact(conversation.messages, { model, limitTokens, signal, onStart });
  if (shorter !== undefined) await conversation.replace(shorter);
  return { messages: withCacheMarks(conversation.messages) };
}
