import { setTimeout as delay } from "node:timers/promises";
import { channelRefusalSchema, type ErrorCode, isErrorCode, SlipwayError } from "@slipway/contract";
import type { z } from "zod";
import type { Backoff } from "./backoff.ts";
import type { Answer, Request, Transport } from "./transport.ts";

/** The transport of requests, and how to wait for an absent host. */
export interface Line {
  readonly transport: Transport;
  backoff(): Backoff;
}

export type Asked<T> = { readonly body: T } | Refusal;

/** The host's final answer. `next` is the first event that it does not have. */
export interface Refusal {
  readonly error: SlipwayError;
  readonly next: number | undefined;
}

/** Asks until the host answers. Retries while the host is away, fails or is busy. Fails only by its signal. */
export async function ask<S extends z.ZodType>(
  { transport, backoff }: Line,
  request: Request,
  schema: S,
  signal: AbortSignal,
): Promise<Asked<z.output<S>>> {
  const waits = backoff();
  for (;;) {
    const answer = await transport.call(request, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (answer !== undefined && answer.status < 300) {
      const body = schema.safeParse(answer.body);
      if (body.success) return { body: body.data };
    } else if (answer !== undefined && isFinal(answer)) {
      return readRefusal(answer);
    }
    await delay(answer?.retryAfterMs ?? waits.nextMs(), undefined, { signal });
  }
}

function isFinal({ status }: Answer): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

function readRefusal({ status, body }: Answer): Refusal {
  const refusal = channelRefusalSchema.safeParse(body).data;
  const code = isErrorCode(refusal?.code) ? refusal.code : codeOf(status);
  const message = refusal?.message ?? `the host answered ${status}`;
  return { error: new SlipwayError(code, message), next: refusal?.next };
}

function codeOf(status: number): ErrorCode {
  if (status === 401) return "run_token_invalid";
  return status === 410 ? "run_ended" : "event_rejected";
}
