import { microUsdPerUsd } from "@slipway/contract";

/** Amounts below 1 USD with four decimals, others in cents. */
export function formatMoney(microUsd: number): string {
  const usd = microUsd / microUsdPerUsd;
  return `${usd.toFixed(usd > 0 && usd < 1 ? 4 : 2)} USD`;
}
