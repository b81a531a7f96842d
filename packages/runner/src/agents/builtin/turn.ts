import { setTimeout as delay } from "node:timers/promises";
import type { AgentEvent } from "@slipway/contract";
import {
  type FinishReason,
  isStepCount,
  type LanguageModel,
  type TextStreamPart,
  ToolLoopAgent,
  type ToolSet,
} from "ai";
import type { FinalEvent } from "../../supervise.ts";
import { compact } from "./compaction/run.ts";
import type { Conversation } from "./conversation.ts";
import { failureOf, isHostAway } from "./failure.ts";
import { instructionsOf, withCacheMarks } from "./instructions.ts";
import type { Permissions } from "./permissions.ts";
import type { BuiltinTool } from "./tools/tool.ts";
import { createToolset } from "./toolset.ts";
import { eventOf, finalEvent, isWhole } from "./translate.ts";

/** Room for a long file in one call, and no more than most models can say at once. */
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
  /** How long a turn waits for a gateway that can not be reached. */
  readonly hostAwayMs: number;
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void;
}

/** Works until the model is done. Answers after every call has ended and the conversation is on disk. */
export async function runTurn(turn: Turn): Promise<FinalEvent> {
  const { conversation, signal, maxSteps } = turn;
  // A restart came between the answer and its report.
  if (conversation.lastAnswer !== undefined) return finalEvent("stop", conversation.lastAnswer);
  let delays = delaysUpTo(turn.hostAwayMs);
  for (let steps = 0; ; ) {
    const loop = await runLoop({ ...turn, maxSteps: maxSteps - steps });
    if (signal.aborted) return { type: "done", outcome: "cancelled", text: "" };
    steps += loop.steps;
    if (loop.steps > 0) delays = delaysUpTo(turn.hostAwayMs);
    if (loop.isHostAway && (await waitFor(delays, turn))) continue;
    const isDone = loop.final.type === "done" && loop.final.outcome === "completed";
    if (!isDone || steps >= maxSteps || conversation.finish()) return loop.final;
  }
}

/** Longer and longer ones, as long as they are no more than that in all. */
function* delaysUpTo(totalMs: number): Generator<number, undefined> {
  for (let ms = 250, left = totalMs; left >= ms; ms = Math.min(2 * ms, 5_000)) {
    left -= ms;
    yield ms;
  }
}

/** False: it has been long enough. */
async function waitFor(delays: Iterator<number, undefined>, { emit, signal }: Turn): Promise<boolean> {
  const { value: ms } = delays.next();
  if (ms === undefined) return false;
  emit({ type: "status", status: "retrying", detail: "the gateway can not be reached" });
  await delay(ms, undefined, { signal }).catch(() => {});
  return true;
}

async function runLoop(turn: Turn): Promise<LoopEnd> {
  const { conversation, signal } = turn;
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
  const { stream } = await agent.stream({ messages: withCacheMarks(conversation.messages), abortSignal: signal });
  const end = await readStream(stream, turn.emit);
  await toolset.settled();
  await conversation.closeStep();
  return end;
}

interface LoopEnd {
  readonly final: FinalEvent;
  /** Those that were finished. */
  readonly steps: number;
  readonly isHostAway: boolean;
}

async function readStream(stream: AsyncIterable<TextStreamPart<ToolSet>>, emit: Turn["emit"]): Promise<LoopEnd> {
  let steps = 0;
  let answer = "";
  let reason: FinishReason | undefined;
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const part of stream) {
      if (part.type === "start-step") answer = "";
      if (part.type === "text-delta") answer += part.text;
      if (part.type === "finish-step") steps++;
      if (part.type === "finish") reason = part.finishReason;
      if (part.type === "error") failure ??= { error: part.error };
      const event = eventOf(part);
      if (event !== undefined) emit(event);
    }
  } catch (error) {
    failure ??= { error };
  }
  if (failure === undefined) return { final: finalEvent(reason, answer), steps, isHostAway: false };
  return { final: failureOf(failure.error), steps, isHostAway: isHostAway(failure.error) };
}

async function prepareStep({ conversation, model, compactAtTokens: limitTokens, signal, emit }: Turn) {
  conversation.assertSaved();
  conversation.listen();
  const onStart = () => emit({ type: "status", status: "compacting" });
  const shorter = await compact(conversation.messages, { model, limitTokens, signal, onStart });
  if (shorter !== undefined) await conversation.replace(shorter);
  return { messages: withCacheMarks(conversation.messages) };
}
