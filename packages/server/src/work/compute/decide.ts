import { computeCost } from "@slipway/contract";
import type { LedgerSettlement, OpenCompute } from "@slipway/engine";
import { type RunTime, ranAt } from "./run-time.ts";

/** How much time is reserved for sandboxes. */
export interface Slices {
  /** Reserved before a sandbox starts. */
  readonly firstMs: number;
  /** Reserved ahead while it runs, if there is money: a server may be away as long. */
  readonly aheadMs: number;
  /** How often what runs is looked at. */
  readonly tickMs: number;
}

const minuteMs = 60_000;

export const usualSlices: Slices = { firstMs: 10 * minuteMs, aheadMs: 120 * minuteMs, tickMs: minuteMs / 2 };

/** At most this share of what a build has left is reserved ahead for one sandbox. */
const shareAhead = 0.1;

/** How far ahead to reserve, by what the build has left. */
export function aheadMsOf({ firstMs, aheadMs }: Slices, microUsdPerMs: number, leftMicroUsd: number): number {
  return Math.min(aheadMs, Math.max(firstMs, Math.floor((leftMicroUsd * shareAhead) / microUsdPerMs)));
}

/** What a part of a sandbox's running time costs. Parts add up to the whole, to the micro-USD. */
export function costBetween(microUsdPerMs: number, fromMs: number, untilMs: number): number {
  return Math.max(0, computeCost(microUsdPerMs, untilMs) - computeCost(microUsdPerMs, fromMs));
}

/**
 * The settlements of one sandbox's reservations, which are sorted by time. While it runs, those are due that the next one
 * has taken over from; when it rests, all are, and the last one pays for a sandbox that ran longer than it might.
 */
export function settlementsOf(
  entries: readonly OpenCompute[],
  time: RunTime,
  nowMs: number,
): readonly LedgerSettlement[] {
  if (time.isStarting) return [];
  const ranMs = ranAt(time, nowMs);
  const isRunning = time.since !== null;
  return entries.flatMap(({ request, terms: { provider, fromMs, untilMs, microUsdPerMs } }, index) => {
    const next = entries[index + 1];
    if (isRunning && (next === undefined || ranMs < untilMs)) return [];
    const usedMs = next === undefined ? ranMs : Math.min(ranMs, untilMs);
    const microUsd = costBetween(microUsdPerMs, fromMs, Math.max(fromMs, usedMs));
    return [{ request, microUsd, provider, end: "complete", estimated: false }];
  });
}

/** How long a server may need to note whose sandbox it has just made. */
const makingMs = minuteMs;
/** After its longest life, and a while for its server to come back, nobody will say what it cost. */
const silentMs = 24 * 60 * minuteMs;

/**
 * What follows for reservations of a sandbox that the provider does not know. Undefined: wait. A sandbox that was never
 * made costs nothing; one that may have come and gone costs what was reserved.
 */
export function settlementOfUnknown(
  { request, sandbox, terms: { provider, fromMs, untilMs }, reservedMicroUsd, reservedAt }: OpenCompute,
  { isOwn, nowMs }: { readonly isOwn: boolean; readonly nowMs: number },
): LedgerSettlement | undefined {
  const ageMs = nowMs - reservedAt;
  const wasNeverMade = sandbox === null && ageMs < untilMs - fromMs;
  if (isOwn && wasNeverMade) {
    return ageMs < makingMs ? undefined : { request, microUsd: 0, provider, end: "failed", estimated: false };
  }
  if (!isOwn && ageMs < untilMs - fromMs + silentMs) return undefined;
  return { request, microUsd: reservedMicroUsd, provider, end: "lost", estimated: true };
}
