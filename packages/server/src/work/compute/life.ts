import { maxLifetimeMs, type SandboxInfo } from "@slipway/contract";
import { paymentOf } from "./account.ts";

/** How long a sandbox lives from each start, and how long before its end its work is handed over to its next life. */
export interface Life {
  readonly lifetimeMs: number;
  readonly handoverMs: number;
}

export const usualLife: Life = { lifetimeMs: maxLifetimeMs, handoverMs: 10 * 60_000 };

/** In how long a sandbox's work is to be handed over. One that is paid for a slice at a time lives on while there is money. */
export function msToHandover(
  { labels, stateChangedAt, expiresAt }: SandboxInfo,
  { lifetimeMs, handoverMs }: Life,
  nowMs: number,
): number {
  const payment = paymentOf(labels);
  const endMs = payment === undefined ? expiresAt : stateChangedAt + payment.lifetimeMs;
  // A clock may be off: no handover is ever further away.
  return Math.min(Math.max(0, endMs - handoverMs - nowMs), lifetimeMs);
}
