import type { ModelRole } from "@slipway/contract";
import type { z } from "zod";

/** Models, by role. The adapter holds keys and budgets, and keeps the books. */
export interface ModelRoles {
  /** Returns an answer that fits the schema. Asks again when one does not, then fails with `invalid_answer`. */
  ask<T>(question: ModelQuestion<T>): Promise<{ readonly value: T }>;
}

export interface ModelQuestion<T> {
  readonly role: ModelRole;
  readonly instructions: string;
  readonly prompt: string;
  readonly schema: z.ZodType<T>;
  readonly maxOutputTokens?: number;
  readonly signal?: AbortSignal | undefined;
}
