import type { Check, Surface } from "@slipway/contract";

/** An app that does nothing: `empty` answers everything with an empty page, `constant` with the same text; both with 200. */
export type Dummy = "empty" | "constant";

/** Apps that do nothing. A check that passes on one of them can prove nothing. */
export interface Dummies {
  /** Makes every check on every dummy. Throws if one cannot be made: that says nothing about the check. */
  passing(
    surface: Surface,
    checks: readonly Check[],
    call: { readonly signal?: AbortSignal | undefined },
  ): Promise<readonly PassedByDummy[]>;
}

export interface PassedByDummy {
  /** Index of the check. */
  readonly check: number;
  readonly dummy: Dummy;
}
