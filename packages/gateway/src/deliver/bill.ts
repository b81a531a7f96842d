import { type ErrorCode, noUsage, type SlipwayError, type Usage } from "@slipway/contract";
import type { PreparedRequest } from "../admit/prepare.ts";
import type { Meter } from "../dialects/dialect.ts";
import type { Reservation } from "../pay/budget.ts";
import type { PaidTokens } from "../pay/funds.ts";
import type { ResponseEnd } from "./health.ts";

/** How far a request has got. */
export interface Progress {
  readonly startedAt: number;
  readonly meter: Meter;
  retries: number;
  /** When the endpoint got the request. Undefined between tries. */
  sentAt: number | undefined;
  /** Time until the answer began. */
  firstByteMs: number | undefined;
}

/** A request whose money is reserved. */
export interface Underway {
  readonly prepared: PreparedRequest;
  readonly reservation: Reservation;
  readonly progress: Progress;
}

export interface Counted {
  readonly usage: Usage;
  /** The endpoint did not report its usage. */
  readonly estimated: boolean;
}

/**
 * Returns what a request used. An answer that began is billed for what arrived. A request that this side gave up may
 * still be answered and billed, so its input counts. A request that the endpoint refused or dropped costs nothing.
 */
export function countCost(underway: Underway, error: SlipwayError | undefined, now: number): Counted {
  const { sentAt, firstByteMs, meter } = underway.progress;
  if (firstByteMs !== undefined) return countUsage(meter, unreported(underway, now));
  const gaveUp = error !== undefined && (cutCodes.has(error.code) || error.code === "model_timeout");
  if (!gaveUp || sentAt === undefined) return { usage: noUsage, estimated: false };
  const { inputTokens, outputTokens } = unreported(underway, now);
  return { usage: { ...noUsage, input: inputTokens, output: outputTokens }, estimated: true };
}

/** Uses the endpoint's count, or an estimate where the count is missing or not final. */
function countUsage(meter: Meter, unreported: PaidTokens): Counted {
  const told = meter.usage;
  if (meter.reported) return { usage: told, estimated: false };
  const toldInput = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, unreported.outputTokens);
  const input = toldInput ? told.input : unreported.inputTokens;
  return { usage: { ...told, input, output }, estimated: true };
}

const cutCodes: ReadonlySet<ErrorCode> = new Set(["aborted", "budget_exhausted", "run_ended"]);

export function endOf(error: SlipwayError | undefined, { firstByteMs, meter }: Progress): ResponseEnd {
  if (error === undefined) return "complete";
  if (cutCodes.has(error.code)) return "cut";
  return firstByteMs === undefined || meter.failure !== undefined ? "failed" : "truncated";
}

function unreported(underway: Underway, now: number): PaidTokens {
  const { prepared, reservation, progress } = underway;
  const seenTokens = reservation.boundOf(progress.meter.estimatedOutputTokens);
  const outputTokens = Math.max(seenTokens, mayBeUnseen(underway, now));
  return { inputTokens: prepared.inputTokens, outputTokens };
}

/** Faster than models write: better to overcount an abandoned answer. */
const tokensPerMs = 0.25;

/** Upper estimate of the output so far when the answer is not streamed or contains hidden thinking. */
function mayBeUnseen({ prepared, reservation, progress }: Underway, now: number): number {
  if (prepared.streamed && prepared.hiddenTokens === 0) return 0;
  const elapsedMs = now - (progress.sentAt ?? now);
  return Math.min(reservation.outputTokens, Math.ceil(elapsedMs * tokensPerMs));
}
