import { type ErrorCode, noUsage, type SlipwayError, type Usage } from "@slipway/contract";
import type { PreparedRequest } from "../admit/prepare.ts";
import type { Meter } from "../dialects/dialect.ts";
import type { Reservation } from "../pay/budget.ts";
import type { PaidTokens } from "../pay/funds.ts";
import type { ResponseEnd } from "./health.ts";

/** How far a request has come. */
export interface Progress {
  readonly startedAt: number;
  readonly meter: Meter;
  retries: number;
  /** When the endpoint got it; undefined while no try is there, as between two of them. */
  sentAt: number | undefined;
  /** Until the answer began. */
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
  /** The endpoint did not say what it counted. */
  readonly estimated: boolean;
}

/**
 * What a request used. An answer that began is billed by what came of it. A request that this side gave up on while it
 * was at the endpoint may be answered and billed all the same, so its input counts. One that the endpoint refused or
 * dropped costs nothing.
 */
export function countCost(underway: Underway, error: SlipwayError | undefined, now: number): Counted {
  const { sentAt, firstByteMs, meter } = underway.progress;
  if (firstByteMs !== undefined) return countUsage(meter, unreported(underway, now));
  const gaveUp = error !== undefined && (cutCodes.has(error.code) || error.code === "model_timeout");
  if (!gaveUp || sentAt === undefined) return { usage: noUsage, estimated: false };
  const { inputTokens, outputTokens } = unreported(underway, now);
  return { usage: { ...noUsage, input: inputTokens, output: outputTokens }, estimated: true };
}

/** By the endpoint's own count, or by estimate where that is missing or not the last. */
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

/** More than models write: an answer that is given up is better counted too high. */
const tokensPerMs = 0.25;

/** What a model may have written so far of an answer that is not streamed, or that it thinks about unseen. */
function mayBeUnseen({ prepared, reservation, progress }: Underway, now: number): number {
  if (prepared.streamed && prepared.hiddenTokens === 0) return 0;
  const elapsedMs = now - (progress.sentAt ?? now);
  return Math.min(reservation.outputTokens, Math.ceil(elapsedMs * tokensPerMs));
}
