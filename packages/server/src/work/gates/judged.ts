import type { Finding } from "@slipway/contract";

/** What a gate has seen. */
export interface Judged {
  /** Without any, the candidate passes. */
  readonly against: readonly Finding[];
  /** For the user to look at: none of it keeps a candidate from passing. */
  readonly notes: readonly Finding[];
}

export const nothingAgainst: Judged = { against: [], notes: [] };
