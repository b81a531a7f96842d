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
  /** Opens the connection instead of dialling the address. */
  readonly connect?: (() => Duplex) | undefined;
}

/** Must be set: for an unknown model, the SDK assumes a few thousand. */
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

/** Waits for a whole answer. Streams it, so that the gateway's first-byte limit does not cover all of a long answer. */
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
    // Nobody reads a partial answer, and parsing it for every piece takes quadratic time.
    output: { ...output, parsePartialOutput: async () => undefined },
    maxOutputTokens: question.maxOutputTokens ?? defaultMaxOutputTokens,
    // The gateway retries.
    maxRetries: 0,
    // The SDK does not know the model behind a role. The gateway translates this for the endpoint.
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

/** The gateway has shorter limits. These apply when it hangs or floods. */
const maxSilenceMs = 15 * 60_000;
const maxResponseBytes = 64 * 1024 * 1024;

function dispatcherFor({ connect }: GatewayAddress): Agent {
  return new Agent({
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    maxResponseSize: maxResponseBytes,
    // The dispatcher needs only a stream, and must not get it synchronously.
    ...(connect && { connect: (_, done) => void setImmediate(() => done(null, connect() as Socket)) }),
  });
}

/** The fetch that matches the dispatcher: Node's own is another version. Their types differ only by name. */
function fetchThrough(dispatcher: Agent): typeof fetch {
  return ((url: string, init: object) => fetchBy(url, { ...init, dispatcher })) as unknown as typeof fetch;
}

/** Only an answer that the model itself finished is an answer. */
function checkEnd({ role }: Question, finishReason: FinishReason | undefined): void {
  switch (finishReason) {
    case "stop":
      return;
    case "content-filter":
      throw new SlipwayError("answer_refused", `the model of the role ${role} declines to answer`);
    case "length":
      throw new SlipwayError("stream_truncated", `the answer of the role ${role} is too long`);
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
