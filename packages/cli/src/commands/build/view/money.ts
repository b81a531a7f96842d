import { microUsdPerUsd } from "@slipway/contract";

/** Small amounts show what they are, large ones no more than cents. */
export function formatMoney(microUsd: number): string {
  const usd = microUsd / microUsdPerUsd;
  return `${usd.toFixed(usd > 0 && usd < 1 ? 4 : 2)} USD`;
}
