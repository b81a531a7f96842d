import { doubling, hasCode, retry } from "@slipway/contract";
import type { Ledger } from "../ports/ports.ts";

const firstWaitMs = 25;
const longestWaitMs = 5000;

/** A ledger that retries while its database is busy or away, until the signal aborts: the money is already spent. */
export function patient(ledger: Ledger, signal: AbortSignal): Ledger {
  return {
    reserve: (entry) => again(() => ledger.reserve(entry), signal),
    // The settlement gives back what was reserved twice.
    extend: (request, microUsd) => again(() => ledger.extend(request, microUsd), signal),
    settle: (settlement) => again(() => ledger.settle(settlement), signal),
    balance: (run) => again(() => ledger.balance(run), signal),
    left: (run) => again(() => ledger.left(run), signal),
    open: (run, budgetMicroUsd) => again(() => ledger.open(run, budgetMicroUsd), signal),
  };
}

/** Waits until the promise resolves or the signal aborts. */
export async function unlessAborted(ended: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const onAbort = () => aborted.resolve();
  signal.addEventListener("abort", onAbort);
  await Promise.race([ended, aborted.promise]);
  signal.removeEventListener("abort", onAbort);
}

function again<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const mayPass = (error: unknown) => hasCode(error, "database_busy") || hasCode(error, "database_unavailable");
  return retry(call, { waitsMs: doubling(firstWaitMs, longestWaitMs), mayPass, signal });
}
