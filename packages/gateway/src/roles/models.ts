import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createAnthropic } from "@ai-sdk/anthropic";
import { SlipwayError, type Usage } from "@slipway/contract";
import {
  type FinishReason,
  type LanguageModel,
  type LanguageModelUsage,
  type ModelMessage,
  type Output,
  streamText,
} from "ai";
import { Agent, fetch as fetchBy } from "undici";
import { asExpected, withText } from "./errors.ts";
import type { Question } from "./question.ts";

export interface GatewayAddress {
  /** Without `/v1`. */
  readonly baseUrl: string;
  readonly token: string;
  /** Connects instead of dialling what the address names. */
  readonly connect?: (() => Duplex) | undefined;
}

/** Has to be said: for a model that it does not know, the SDK takes a few thousand. */
const defaultMaxOutputTokens = 16_384;

/** Models behind the gateway. */
export function connectModels(gateway: GatewayAddress) {
  const dispatcher = dispatcherFor(gateway);
  const provider = createAnthropic({
    baseURL: `${gateway.baseUrl}/v1`,
    authToken: gateway.token,
    fetch: fetchThrough(dispatcher),
  });
  return {
    /** Asks once and waits for the whole answer. */
    ask: <T>(question: Question, messages: ModelMessage[], output: Output.Output<T, unknown, never>) =>
      stream(provider(question.role), question, messages, output),
    [Symbol.asyncDispose]: () => dispatcher.destroy(),
  };
}

/** A whole answer. It is streamed, so that the gateway's limit for the first byte does not hold for all of a long one. */
async function stream<T>(
  model: LanguageModel,
  question: Question,
  messages: ModelMessage[],
  output: Output.Output<T, unknown, never>,
) {
  let failure: unknown;
  let text = "";
  const answer = streamText({
    model,
    instructions: question.instructions,
    messages,
    // Nobody looks at half an answer, and to parse it with every piece costs the square of its length.
    output: { ...output, parsePartialOutput: async () => undefined },
    maxOutputTokens: question.maxOutputTokens ?? defaultMaxOutputTokens,
    // The gateway retries.
    maxRetries: 0,
    // The SDK does not know what the model behind a role can do; the gateway says it in the endpoint's words.
    providerOptions: { anthropic: { structuredOutputMode: "outputFormat" } },
    onChunk({ chunk }) {
      if (chunk.type === "text-delta") text += chunk.text;
    },
    onError({ error }) {
      failure ??= error;
    },
    ...(question.signal && { abortSignal: question.signal }),
  });
  try {
    await answer.consumeStream();
    if (failure !== undefined) throw failure;
    checkEnd(question, await answer.finishReason);
    return { answer, usage: usageOf(await answer.usage) };
  } catch (error) {
    throw withText(asExpected(error, question), text);
  }
}

/** The gateway has shorter limits; these hold when it falls silent or runs wild. */
const maxSilenceMs = 15 * 60_000;
const maxResponseBytes = 64 * 1024 * 1024;

function dispatcherFor({ connect }: GatewayAddress): Agent {
  return new Agent({
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    maxResponseSize: maxResponseBytes,
    // It needs no more of a socket than any stream has, and none before it has asked for one.
    ...(connect && { connect: (_, done) => void setImmediate(() => done(null, connect() as Socket)) }),
  });
}

/** The fetch that goes with the dispatcher: Node's own is of another version. Their types differ by name only. */
function fetchThrough(dispatcher: Agent): typeof fetch {
  return ((url: string, init: object) => fetchBy(url, { ...init, dispatcher })) as unknown as typeof fetch;
}

/** Only an answer that the model itself brought to its end is an answer. */
function checkEnd({ role }: Question, finishReason: FinishReason | undefined): void {
  switch (finishReason) {
    case "stop":
      return;
    case "content-filter":
      throw new SlipwayError("answer_refused", `the model of the role ${role} declines to answer`);
    case "length":
      throw new SlipwayError("stream_truncated", `the answer of the role ${role} is longer than it may be`);
    default:
      throw new SlipwayError("stream_truncated", `the answer of the role ${role} has no end`);
  }
}

function usageOf(usage: LanguageModelUsage | undefined): Usage {
  const { noCacheTokens, cacheReadTokens, cacheWriteTokens } = usage?.inputTokenDetails ?? {};
  return {
    input: noCacheTokens ?? 0,
    output: usage?.outputTokens ?? 0,
    cacheRead: cacheReadTokens ?? 0,
    cacheWrite: cacheWriteTokens ?? 0,
  };
}
