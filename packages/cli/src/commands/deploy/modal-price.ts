import { type ComputePrice, settingsError } from "@slipway/contract";
import { readGatewaySettings } from "@slipway/gateway";
import type { Environment } from "../../terminal/environment.ts";

/** From the shipped price table, or the one that SLIPWAY_PRICES names. */
export function modalPrice(environment: Environment): ComputePrice {
  const price = readGatewaySettings(environment).computePrices["modal"];
  if (price === undefined) throw settingsError(["SLIPWAY_PRICES: there is no price of compute for modal."]);
  return price;
}
