import type { ModelRole } from "@slipway/contract";
import type { z } from "zod";

/** Models, by what they are asked for. What answers has keys and budgets, and keeps the books. */
export interface ModelRoles {
  /** An answer that fits the schema; one that does not is asked for again before this fails with `invalid_answer`. */
  ask<T>(question: ModelQuestion<T>): Promise<{ readonly value: T }>;
}

export interface ModelQuestion<T> {
  readonly role: ModelRole;
  readonly instructions: string;
  readonly prompt: string;
  readonly schema: z.ZodType<T>;
  readonly maxOutputTokens?: number;
  readonly signal?: AbortSignal;
}
