import { type ComputePrice, type ComputePrices, settingsError } from "@slipway/contract";

interface Priced {
  readonly models: { readonly computePrices: ComputePrices };
  /** Of sandboxes. */
  readonly provider: string;
}

/** What sandboxes cost. A simulation still reads repositories in local ones. */
export function computePriceOf({ models, provider }: Priced): ComputePrice {
  const price = models.computePrices[provider === "simulated" ? "local" : provider];
  if (price !== undefined) return price;
  throw settingsError([
    `SANDBOX_PROVIDER: sandboxes of ${provider} have no price here; give it in the file that SLIPWAY_PRICES names.`,
  ]);
}
