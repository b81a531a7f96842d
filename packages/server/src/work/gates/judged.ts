import type { Finding, GateResult } from "@slipway/contract";

/** What a gate has seen. */
export interface Judged {
  /** Without any, the candidate passes. */
  readonly against: readonly Finding[];
  /** For the user to look at: none of it keeps a candidate from passing. */
  readonly notes: readonly Finding[];
  /** What was looked at, one by one. */
  readonly parts?: GateResult["parts"];
}

export const nothingAgainst: Judged = { against: [], notes: [] };
