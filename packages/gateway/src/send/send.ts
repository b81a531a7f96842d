import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import type { Clock } from "../ports/ports.ts";
import type { Retries } from "../settings/settings.ts";
import { type Answer, collect } from "./answer.ts";
import { errorMessage, isRetryable, refusal, retryDelayMs } from "./retry.ts";
import type { Send, UpstreamRequest } from "./upstream.ts";

interface SendOptions {
  readonly retries: Retries;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The endpoint gets the request now. */
  onSent(): void;
  /** The endpoint did not take it. */
  onRetry(): void;
}

const maxErrorBytes = 64 * 1024;

/** Sends a request until the endpoint takes it or no try is left. Fails with a typed error. */
export async function sendWithRetries(send: Send, request: UpstreamRequest, options: SendOptions): Promise<Answer> {
  const { retries, signal, clock } = options;
  for (let number = 1; ; number++) {
    const tried = await tryOnce(send, request, options);
    if ("status" in tried) return tried;
    if (!tried.retryable || number >= retries.tries) throw tried.error;
    options.onRetry();
    const delayMs = retryDelayMs(retries, { number, retryAfter: tried.retryAfter, nowMs: clock.now() }, Math.random());
    await sleep(delayMs, undefined, { signal }).catch(() => Promise.reject(signal.reason));
  }
}

interface FailedTry {
  readonly error: SlipwayError;
  readonly retryable: boolean;
  readonly retryAfter: string | undefined;
}

async function tryOnce(send: Send, request: UpstreamRequest, options: SendOptions): Promise<Answer | FailedTry> {
  const { signal, onSent } = options;
  try {
    const answer = await send(request, signal, onSent);
    if (answer.status >= 200 && answer.status < 300) return answer;
    const error = await readRefusal(answer, request);
    return { error, retryable: isRetryable(answer.status), retryAfter: answer.retryAfter };
  } catch (error) {
    if (!(error instanceof SlipwayError) || signal.aborted) throw error;
    return { error, retryable: error.code === "model_unreachable", retryAfter: undefined };
  }
}

async function readRefusal(answer: Answer, { endpoint }: UpstreamRequest): Promise<SlipwayError> {
  const body = await collect(answer, maxErrorBytes).catch(() => Buffer.alloc(0));
  return refusal(endpoint, answer.status, errorMessage(body.toString("utf8")));
}
