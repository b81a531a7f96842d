import { maxLifetimeMs, type SandboxInfo } from "@slipway/contract";
import { paymentOf } from "./account.ts";

/** How long a sandbox lives from each start, and how long before its end its work is handed over to its next life. */
export interface Life {
  readonly lifetimeMs: number;
  readonly handoverMs: number;
}

export const usualLife: Life = { lifetimeMs: maxLifetimeMs, handoverMs: 10 * 60_000 };

/** When a sandbox's work is to be handed over. What is paid for a slice at a time lives on while there is money. */
export function handoverAtMs({ labels, stateChangedAt, expiresAt }: SandboxInfo, { handoverMs }: Life): number {
  const payment = paymentOf(labels);
  const endMs = payment === undefined ? expiresAt : stateChangedAt + payment.lifetimeMs;
  return endMs - handoverMs;
}
