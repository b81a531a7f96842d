import type { Check } from "@slipway/contract";

/** What came of a check. The text tells what was done and seen, and nothing of what the check compares it with. */
export interface Outcome {
  readonly ok: boolean;
  readonly text: string;
}

export type CheckOf<T extends Check["type"]> = Extract<Check, { readonly type: T }>;
